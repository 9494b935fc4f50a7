/// Generated code names the version of the interface that it was made for: `LIFELINE_INTERFACE_VERSION` in
/// lifeline_table.h. Where this library has another one, there is no such type, and the compiler says so.
public enum _GeneratedForVersion6 {}
