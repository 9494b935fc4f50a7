// Code that uses these clients also names endpoints, configurations and errors, so one import has them all.
@_exported public import Lifeline
