// Code that asks whether an endpoint can be reached also names endpoints, so one import has both.
@_exported public import LifelineCore
