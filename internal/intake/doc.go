// Package intake turns lines into events: what "almanac send" reads from its
// input. It is pure: it reads from one io.Reader, asks no clock, starts nothing,
// and holds at most one record (twice MaxRecordBytes) in memory.
//
// # Model
//
// A record is one event's worth of input: a line, several lines that belong
// together (Multiline), or a CSV row whose quoted cells span lines. Next returns
// records in order, each with the number of its first line and how many it has.
// Every line of the input is in exactly one record, but for JSON documents, blank lines (see
// Blank) and the header of a CSV file.
//
//	text    the whole record is the message. Time, user and more may be taken
//	        out of it (TsFormat, UserRegex, Extract) and stay in it as well
//	ndjson  rawjson.Keys.Parse: nothing of the object is lost but nulls
//	json    the same of objects over several lines, and of the elements of arrays
//	logfmt  key=value pairs; a bare key is an attribute with an empty text
//	csv     RFC 4180 with a header line; each column is a field named as the
//	        header says; empty cells are left out, since an attribute that is
//	        absent reads as empty
//
// Keys with our words (ts, level, user_id, message, …) fill the event's fields
// in every format. See rawjson.Parse.
//
// # Bytes
//
// The line end that closes a record, \n or \r\n, is not part of it. All other
// bytes are kept as they are, line ends within a record and invalid UTF-8
// included. Two exceptions: a byte order mark before the
// first line is skipped, and the logfmt reader replaces invalid UTF-8 in quoted
// values with escapes by U+FFFD.
//
// # Time
//
// The time of a record is that of Options.TsField, else of ts, time, timestamp or @timestamp, in the form of
// Options.TsFormat, else as schemas.ParseTime and ParseJSONTime read it. One that cannot be read refuses the
// record. A record without one is refused where a field or a form was named, and else has the zero time,
// which means now: Options.RequireTime and Untimed say otherwise. A JSON null does not count as one. OtherTime of such a record is a
// key that may have been meant. Formats without a year (syslog) get one: see Options.Year.
//
// # Long records
//
// An event has at most schemas.MaxEventBytes. Fit cuts the longest texts of a longer one (Options.Long is LongCut), or makes
// several events of its longest text (LongSplit), each with all its other fields. Both note how many bytes the record had and
// their SHA-256; the digest is left out under privacy rules, since it would confirm what these hide. JSON text is
// left out whole under rules, which could not reach into half of it.
//
// # Failures
//
// A record that cannot become an event comes back with Record.Err, its line and
// its bytes, and reading goes on: ErrTooLong, ErrNoTime, ErrSyntax, or an error
// of schemas. Next itself fails only when the input does, or when a CSV header
// cannot be used (ErrHeader). What was read of an unfinished record is then not
// returned, because half a record is not the truth.
package intake
