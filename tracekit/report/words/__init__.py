"""What facts are called in English: one noun a file. No other room writes a sentence that a user reads."""
