"""What loops carry from one iteration to the next, and what loops inside of them read and leave of it.

    promote_elements     an array of which one element is written is not carried: the element is; begin here
    share_states         states that are equal in every iteration are one
    forget_unread        what is written to arrays and nobody reads is not written
    set_once             what is added to zeros, to no element twice, is set
    forget_overwritten   arrays that are written anew are not set before
    carry_elements       an element that one iteration writes and the next one reads is carried beside its array
    read_latest          arrays that are updated behind a loop, for what reads the other parts later
    carry_transposes     matrices that are updated by columns are carried transposed
    turn_columns         columns that a loop goes through are rows of a transpose
    turn_stacks          stacks of transposes that are read transposed
    fill_rows            arrays that are filled before a loop that writes to their rows are filled there
    share_parts          parts of arrays that loops inside read or fill are read and filled where they lie
"""
