package intake

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/almanac-events/almanac/schemas"
)

// The formats of the input.
const (
	FormatText   = "text"
	FormatNDJSON = "ndjson"
	FormatJSON   = "json"
	FormatLogfmt = "logfmt"
	FormatCSV    = "csv"
)

// Formats lists every format, for messages and help.
var Formats = []string{FormatText, FormatNDJSON, FormatJSON, FormatLogfmt, FormatCSV}

// DefaultMaxRecordBytes is four times what an event may have: escapes and
// quotes may make a record longer than its event, not much more than that.
const DefaultMaxRecordBytes = 4 * schemas.MaxEventBytes

// LongMaxRecordBytes is for topics of kind audit, whose events have bodies that are left out where they are
// long, and where long records are cut or split: what a gateway takes as one body.
const LongMaxRecordBytes = 16 << 20

// maxRecordBytes is the bound of a record.
func (o *Options) maxRecordBytes() int {
	switch {
	case o.MaxRecordBytes != 0:
		return o.MaxRecordBytes
	case o.Long != LongRefuse, o.Topic != nil && len(o.Topic.Spec().Bodies) > 0:
		return LongMaxRecordBytes
	}
	return DefaultMaxRecordBytes
}

// Options say how to read the input. Only Format is needed.
type Options struct {
	// Format is one of Formats.
	Format string
	// Multiline begins a record at each line it matches; the lines between
	// belong to the record before them. Nil: each line is a record. Text only.
	Multiline *regexp.Regexp
	// MaxRecordBytes bounds a record; a longer one is refused and skipped
	// without being held. 0: DefaultMaxRecordBytes, or LongMaxRecordBytes.
	MaxRecordBytes int

	// Long says what Fit makes of an event above schemas.MaxEventBytes.
	Long Long

	// Records is the path of dotted keys to the array whose elements are the records.
	// Empty: each object is a record, and each element of an array. JSON only.
	Records string

	// TsField names the field that holds the time: a path of dotted keys in
	// ndjson, a key in logfmt, a column in csv, a named group of Extract in
	// text. Several are parted by commas, and the first that a record has counts. Empty: ts, time,
	// timestamp or @timestamp; in text, see TsFormat.
	TsField string
	// TsFormat is how the time is written: a name of TsFormats, or a layout of
	// Go's time package. Empty: RFC 3339, or a number whose size tells its unit
	// (schemas.ParseJSONTime).
	// In text without a time group, the time is looked for at the beginning of
	// the record's first line (after a syslog <priority>), then behind the
	// first [ of that line.
	TsFormat string
	// A record without a time is refused where TsField or TsFormat is given, and else gets now, from
	// the part that takes it. RequireTime refuses it always, and Untimed never.
	RequireTime, Untimed bool
	// Location is the zone of times that name none. Nil: UTC.
	Location *time.Location
	// Year is the year of the first record, for formats without one; later
	// records take the year that brings them nearest to the one before, so the
	// turn of a year is followed. 0: the latest year that puts each time not
	// more than schemas.MaxFuture after Now.
	Year int
	// Now is the clock for Year 0. Needed only by formats without a year.
	Now time.Time

	// UserField names the field that becomes user_id, as TsField does.
	UserField string
	// Columns, by path, are the columns and promoted fields that other fields of a record
	// fill; see rawjson.Keys.
	Columns map[string]string
	// UserRegex finds user_id in a text record: its one group. Text only.
	UserRegex *regexp.Regexp
	// Extract takes fields out of a text record: each named group is a field,
	// as a key in the other formats is. A record it does not match is kept with
	// its message only. Text only.
	Extract *regexp.Regexp

	// Stop is asked between records, and within long ones while an expression is matched. What it returns ends the reading; nil: it is
	// not asked.
	Stop func() error

	// DropRaw leaves the message empty that would be the whole record, so that only
	// what Extract names is kept. A record it does not match is refused. Text only.
	DropRaw bool
	// Topic, when not nil, is where the events go; see rawjson.Keys.
	Topic *schemas.Topic

	// Delimiter parts the cells of a CSV row; 0: a comma.
	Delimiter rune

	// Service, Type and Level are for events without one of their own.
	Service, Type, Level string
}

// timeWords are the groups of Extract that hold a time when TsField is empty.
var timeWords = []string{"ts", "time", "timestamp"}

// Validate reports the first option that cannot be used.
func (o *Options) Validate() error {
	bad := func(format string, a ...any) error {
		return fmt.Errorf("%w: %w", ErrOptions, fmt.Errorf(format, a...))
	}
	text := o.Format == FormatText
	switch {
	case !slices.Contains(Formats, o.Format):
		return bad("format is %q, it must be one of %s", o.Format, strings.Join(Formats, ", "))
	case o.Multiline != nil && !text:
		return bad("multiline is for format %s, the format is %s", FormatText, o.Format)
	case o.UserRegex != nil && !text:
		return bad("the user regex is for format %s, the format is %s; name a user field", FormatText, o.Format)
	case o.Extract != nil && !text:
		return bad("extract is for format %s, the format is %s", FormatText, o.Format)
	case o.DropRaw && o.Extract == nil:
		return bad("without extract nothing is left of a record whose raw text is dropped")
	case o.Delimiter != 0 && o.Format != FormatCSV:
		return bad("the delimiter is for format %s, the format is %s", FormatCSV, o.Format)
	case o.Delimiter == '"' || o.Delimiter == '\r' || o.Delimiter == '\n' || o.Delimiter == utf8.RuneError || !utf8.ValidRune(o.Delimiter):
		return bad("delimiter %q cannot part cells", o.Delimiter)
	case o.Records != "" && o.Format != FormatJSON:
		return bad("the path of the records is for format %s, the format is %s", FormatJSON, o.Format)
	case o.MaxRecordBytes < 0:
		return bad("max record bytes is %d, it must be 0 (for %d) or more", o.MaxRecordBytes, DefaultMaxRecordBytes)
	case o.Year != 0 && (o.Year < 1970 || o.Year > 2261):
		return bad("year is %d, it must be 1970 to 2261, or 0 to tell it from the clock", o.Year)
	case o.UserRegex != nil && o.UserRegex.NumSubexp() != 1:
		return bad("the user regex has %d groups, it must have one, around the user's id", o.UserRegex.NumSubexp())
	case o.Extract != nil && !slices.ContainsFunc(o.Extract.SubexpNames(), func(n string) bool { return n != "" }):
		return bad("extract has no named group; write (?P<status>[0-9]+)")
	case o.RequireTime && o.Untimed:
		return bad("a time is required of each record, and of none")
	case text && o.TsField != "" && !slices.ContainsFunc(o.timeFields(), o.extracts):
		return bad("ts field is %q, which is not a named group of extract; in text without one, give the ts format only", o.TsField)
	case text && o.UserField != "" && !o.extracts(o.UserField):
		return bad("user field is %q, which is not a named group of extract; in text, give a user regex", o.UserField)
	}
	if err := o.validateColumns(); err != nil {
		return bad("%w", err)
	}
	if column, path, rule := o.inClear(); rule != "" {
		return bad("%s is taken from %q, which has the rule %s, and %[1]s does not have one: its text would be stored there in clear. Declare a rule for %[1]s, or name another field", column, path, rule)
	}
	c, err := newClock(o)
	if err != nil {
		return bad("%v", err)
	}
	if c.yearless && o.Year == 0 && o.Now.IsZero() {
		return bad("times of format %q have no year; give one, or the clock", o.TsFormat)
	}
	return nil
}

// RawKeeps returns the fields that are taken out of a text record by a name under
// one of the topic's rules, while the message keeps the whole record in clear.
func (o *Options) RawKeeps() (fields []string) {
	if o.Topic == nil || o.Format != FormatText || o.DropRaw || o.Topic.RuleOf(schemas.ColMessage) != "" || o.extracts(schemas.ColMessage) {
		return nil
	}
	var names []string
	if o.Extract != nil {
		names = o.Extract.SubexpNames()
	}
	if o.UserRegex != nil || o.UserField != "" {
		names = append(names, schemas.ColUserID)
	}
	for _, name := range names {
		if rule := o.Topic.RuleOf(name); rule != "" && !slices.Contains(fields, name) {
			fields = append(fields, name)
		}
	}
	return fields
}

// timeFields are the names in TsField.
func (o *Options) timeFields() []string {
	if o.TsField == "" {
		return nil
	}
	return strings.Split(o.TsField, ",")
}

func (o *Options) extracts(group string) bool {
	return o.Extract != nil && slices.Contains(o.Extract.SubexpNames(), group)
}

// extractsTime says that a group of Extract holds the time.
func (o *Options) extractsTime() bool {
	return o.TsField != "" || slices.ContainsFunc(timeWords, o.extracts)
}
