// Code that uses these clients also names endpoints, configurations and errors: one import brings them all.
@_exported public import Lifeline
