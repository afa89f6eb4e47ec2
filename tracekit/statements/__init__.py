"""What tracekit says: a class a code, a file a subject."""
