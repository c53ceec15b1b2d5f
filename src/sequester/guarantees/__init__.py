"""What a single release promises: criteria over its classes, and the requirement a policy makes of them.

Plain definitions in numpy. Methods never decide with this code and this code never uses a method's: it is the judge.

A sensitive column goes by several names on its way from the policy to a guard, each for what is known by then:

- `Sensitive` of the policy: what is declared. `domain.Hierarchy`: the codes of its values, once data is
  read; `domain.Cover`: which values a cell has or may have, where that is more than one.
- `Protected`: the attribute with its domain, its cover and what is asked of it (`Criterion`), before any record.
- `View`: the same over the codes of records: what is looked at as one value, and the criteria defined on that. Classes
  are judged by views; a `ClassGuard` has them in the form that compiled loops read (`Limits`).
- `history.Sight`: a view as a series keeps it. A view is two sights where some of its values stay with a person and
  others change. A `History` is a sight and all that was published of it.
- `series_guard.Terms`: the bounds of one history over the people of one next table, in arrays.
"""
