package schemas

// MaxJSONFlatten is the depth to which nested objects become dotted names;
// deeper ones stay JSON text. 8 covers every real record met so far (the
// deepest, a GitHub event, needs 6) and bounds the length of names.
const MaxJSONFlatten = 8

// JSONWords are the keys of a JSON event that fill a column, with the column.
var JSONWords = map[string]string{
	ColTs: ColTs, "time": ColTs, "timestamp": ColTs, "@timestamp": ColTs,
	ColID: ColID, ColLevel: ColLevel, ColService: ColService, ColType: ColType,
	ColUserID: ColUserID, ColTraceID: ColTraceID, ColSpanID: ColSpanID,
	ColMessage: ColMessage, wordMsg: ColMessage,
}

// NamedUnder returns what reports whether a name is the field's, or derived from it, as
// privacy rules see it.
func NamedUnder(field string) func(name string) bool {
	names := NamesUnder([]Private{{Field: field}})
	return func(name string) bool {
		_, ok := names.Rule(name)
		return ok
	}
}
