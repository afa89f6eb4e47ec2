"""What a reader should know or do about ranks that communicate."""
