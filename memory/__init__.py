"""What is kept of a document: text, pages, sections, chunks; parsing; the store."""
