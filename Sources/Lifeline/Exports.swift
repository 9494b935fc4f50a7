// Code that uses a connection also names endpoints, errors and messages, so one import has them all.
@_exported public import LifelineCore
@_exported public import LifelineMessages
