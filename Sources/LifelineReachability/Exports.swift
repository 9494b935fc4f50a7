// Code that asks whether an endpoint can be reached names it: one import brings both. The files that parse netlink have no
// import of their own for `IPAddress`: Tests/Fuzzers builds them together with it, in one module.
@_exported public import LifelineCore
