"""Writers of docs/reference, one file a page or kind of page; what they share is in layout.py and fields.py."""
