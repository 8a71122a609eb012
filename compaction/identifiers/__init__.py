"""Names, paths, numbers and ids that a text mentions, which later messages may need again.

`extract` defines which strings count. `texts` and `runs` cache what was found, so that a process scans each
text, and each part of it without spaces, only once. `marks` lists the accents that are separate characters.
"""
