// Package fields holds what the inputs share when they turn a protocol's record
// into an event: words for levels. It is pure.
//
// # Model
//
// A level is one word in lower case, the same whatever client sent it, so that a
// filter on "error" finds what syslog calls err and Java calls ERROR. Words of
// equal meaning become one. Words that only some protocols have, such as notice
// and alert, stay. The text as it was sent stays in the attribute level_text
// where it differs (schemas.AttrLevelText).
//
// Which names of a record fill which field is each input's own table; see
// rawjson.Paths, which also joins the names of nested objects with dots.
package fields
