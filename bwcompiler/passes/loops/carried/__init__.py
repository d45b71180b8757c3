"""The state that loops carry from one iteration to the next, and what inner loops read and write of it.

    promote_elements     if only one element of an array is written, the element is carried instead of the array; begin here
    share_states         states that are equal in every iteration become one
    forget_unread        writes to arrays that nothing reads are removed
    set_once             additions to zeros, at most one per element, become assignments
    forget_overwritten   arrays that are completely overwritten are not initialised
    carry_elements       an element that one iteration writes and the next one reads is carried beside its array
    read_latest          if an array is updated after a loop, later readers of its other parts read the updated array
    carry_transposes     matrices that are updated by columns are carried transposed
    turn_columns         columns that a loop reads become rows of a transpose
    turn_stacks          stacks of transposes that are read transposed are stacked as they are
    fill_rows            initialisation of an array is moved into the loop that writes its rows
    share_parts          parts of arrays that inner loops read or fill are used where they lie, without copies
    write_parts_once     updates of an array in rows that run together become one for each part
"""
