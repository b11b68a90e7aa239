"""What people said about images and attributes, read from files: ratings, marks, stereotypes.

Readers turn released or collected files into arrays for the measures, refuse what is wrong with
the file, the row and the way to fix it, and say in `notes` what they left out. `task` plans an
annotation task as data; `exchange` and `coco` write and read it.
"""
