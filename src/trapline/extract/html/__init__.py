"""What is read from HTML itself: charset, outline, links, images, regions, what is hidden.

In: bytes or a parsed tree. Out: text, flat arrays, URLs. Pure functions.
"""
