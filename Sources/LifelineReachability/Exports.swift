// Code that asks whether an endpoint can be reached names it: one import brings both.
@_exported public import LifelineCore
