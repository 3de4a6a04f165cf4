// Package filter is the language of --where: it turns
//
//	level = 'error' AND (user_id IN ('u-7', 'u-8') OR attributes.actor.login contains "bot")
//
// into a ClickHouse condition with server-side parameters.
//
// # Language
//
//	filter     = [ or ]                                   empty matches every event
//	or         = and { OR and }
//	and        = not { AND not }
//	not        = { NOT } ( "(" or ")" | EXISTS field | comparison )
//	comparison = field ( = | != | < | <= | > | >= | CONTAINS | MATCHES ) value
//	           | field [ NOT ] IN "(" value { "," value } ")"
//	field      = a column or promoted field | attributes.a.dotted.name | attributes['any name']
//	             (attributes.name#2 is the second of a name that came twice)
//	value      = 'text' | "text" | number | true | false | relative time such as -15m
//
// Keywords may be written in any case, names may not. A name that is also a
// keyword is written in back quotes; == is the same as =. In texts \n \t \r \0
// \\ \' and \" are escapes, and any other backslash stands for itself, so that
// regular expressions need no doubling: message matches '\d+ ms'.
//
// # Meaning
//
// The truth of a filter is true or false, never unknown: NOT x matches exactly
// the events x does not.
//
// Columns and promoted fields have types and take values of their type only: ts
// and timestamps an RFC 3339 text, a date or a relative time; month 'YYYY-MM';
// shard its 16 hex digits; id a UUID. A promoted field an event lacks is its
// type's zero, so exists is for attributes and text columns (where it means not
// empty) and refused elsewhere. An event that is older than a promoted field has it as its
// attribute of that name says.
//
// An attribute is text, and one an event lacks is the empty text: it matches
// != and NOT IN. Only exists tells the two apart. =, != and IN compare the
// text; <, <=, > and >= compare numbers when the value is a number (an
// attribute that is none never matches), else texts byte by byte. Whole numbers of up to 76
// digits compare exactly, others as float64. An attribute
// that the topic promotes lives in its column. The form attributes.name reaches only
// the rows whose value did not fit the column, or which are older than it.
//
// contains is case-sensitive. The operator MATCHES is an RE2 expression, unanchored, where
// . matches a newline too; (?i) makes it ignore case.
//
// # Safety
//
// Nothing a user writes is part of the SQL: values and attribute names become
// parameters, and columns are copied from the topic, not from the filter.
// Length, nesting and lists are bounded (MaxFilterBytes, MaxNesting, MaxList).
//
// # Row limits
//
// A context may have a filter of its own (WithLimit): that of a token which reads some rows alone. ParseWithin joins it with
// what is asked. ParseLimit says what such a filter may be, so that no event is within it for what it lacks.
//
// # Failures
//
// Every refusal is an *Error with the column it is about. ErrUnknownField,
// ErrTooLarge and ErrType tell the kinds apart for errors.Is.
package filter
