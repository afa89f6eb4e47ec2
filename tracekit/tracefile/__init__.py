"""Chrome/Kineto JSON to Trace and back. The only room that sees raw events."""
