"""Python objects that depend on data.  A group imports only of those above it:

    what a variable holds       `choices` (one of several known things, or a value), `identities` and `changed` (one of several objects),
                                `two_shapes` (a number or an array), `unbound` (something or nothing), `tuples` (such things in tuples);
                                `fitting` makes what the sides of a branch give alike, `orders` compares
    lists with gaps             `gaps` (each element is there or not), `moved` (counted and put elsewhere), `keyed` (by their keys),
                                `searches` (`any`, `next`); `taking` says which functions accept them
    items at traced places      `lookups` (of a dictionary, set or list), `ragged` (one of several lists)
    results                     `outcomes`

Begin with `choices` and `gaps`.
"""
