// One import brings the configuration, states and errors of a connection, too.
@_exported public import LifelineCore
