// Who simulates a connection also names its configuration, states and errors: one import brings them all.
@_exported public import LifelineCore
