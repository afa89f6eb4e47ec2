"""From recordings of many ranks to digests, and to what they say together."""
