package schemas

import (
	"fmt"
	"reflect"
	"time"

	"github.com/almanac-events/almanac/schemas/kinds"
)

// Option is one setting of a topic. Flags of `almanac topics apply`, keys of the settings
// file, help, defaults, what may change and what is valid are all made of Options: a new
// option is a field of Topic and an entry there.
type Option struct {
	// Key of the settings file; "rotate.rows" is the key rows of the group rotate.
	Key string
	// Flag of `almanac topics apply`.
	Flag string
	// Usage is the flag's help, with what its value is in backquotes.
	Usage string
	// Of points to the value in a topic: a *string, *Kind, *int, *uint64, *time.Duration,
	// *bool, *[]string, *[]Field, *[]Private or *[]MetricDescriptor.
	Of func(*Topic) any
	// Size says that a *uint64 is a number of bytes, written like 2GiB.
	Size bool
	// Default is the value of topics that give none. Nil: the zero value, or what setKind
	// and setDocuments fill in.
	Default any
	// Only names the one kind of topic that has the option; empty: every kind.
	Only Kind
	// Frozen says what to do instead of changing the option of a live topic; empty: it may
	// be changed.
	Frozen string
	// Check reports what is wrong with the value. Nil: any value is good, or Validate
	// checks it together with others.
	Check func(*Topic) error
}

// anotherTopic is what helps where an option is frozen.
const anotherTopic = "declare another topic and replay into it"

// Options lists every option, in the order in which they are checked.
var Options = []Option{
	{Key: "kind", Flag: "kind", Of: func(t *Topic) any { return &t.Kind }, Frozen: "declare another topic",
		Usage: fmt.Sprintf("`KIND` of a new topic, which cannot be changed later: %s (default %s)", kinds.List(), kinds.Log)},
	{Key: "lanes", Flag: "lanes", Of: func(t *Topic) any { return &t.Lanes }, Frozen: anotherTopic,
		Usage: "slices of each month, of documents and timers 4 unless given; cannot be changed later",
		Check: func(t *Topic) error { return between("lanes", t.Lanes, 1, MaxLanes) }},
	{Key: "lane_by", Flag: "lane-by", Of: func(t *Topic) any { return &t.LaneBy }, Frozen: anotherTopic,
		Usage: "`FIELDS` that decide the lane; cannot be changed later"},
	{Key: "once_by", Flag: "once-by", Of: func(t *Topic) any { return &t.OnceBy }, Frozen: anotherTopic,
		Usage: "`COLUMNS` that make two events the same one, so that a copy counts once; cannot be changed later"},
	{Key: "once_within", Flag: "once-within", Of: func(t *Topic) any { return &t.OnceWithin }, Frozen: anotherTopic,
		Usage: "`LENGTH` of time after an event in which an equal one is a copy of it, which bounds how far back the topic looks (default: as long as the rows); cannot be changed later",
		Check: (*Topic).checkOnceWithin},
	{Key: "fields", Flag: "field", Of: func(t *Topic) any { return &t.Fields },
		Usage: fmt.Sprintf("add a promoted field `NAME:TYPE`, or NAME:TYPE:FROM with the dotted path that events bring it by; types: %v", FieldTypes)},
	{Key: "rotate.rows", Flag: "rotate-rows", Of: func(t *Topic) any { return &t.Rotate.Rows },
		Usage: "rows that fill a shard (0: never)"},
	{Key: "rotate.bytes", Flag: "rotate-bytes", Of: func(t *Topic) any { return &t.Rotate.Bytes }, Size: true,
		Usage: "`SIZE` that fills a shard (0: never; default 2GiB)"},
	{Key: "rotate.span", Flag: "rotate-span", Of: func(t *Topic) any { return &t.Rotate.Span },
		Usage: "`LENGTH` of spans of event time from 1970 on; the first event of a later span begins a shard (0s: never, the default)",
		Check: func(t *Topic) error { return between("rotate span", t.Rotate.Span, 0, MaxKeepDays*24*time.Hour) }},
	{Key: "sql_fresh", Flag: "sql-fresh", Of: func(t *Topic) any { return &t.SQLFresh },
		Usage: fmt.Sprintf("`LENGTH` of time an accepted event may take until SQL has it (1s to 1h; default %s); queries have it at once", DefaultSQLFresh),
		Check: func(t *Topic) error { return between("sql_fresh", t.FreshWithin(), MinSQLFresh, MaxSQLFresh) }},
	{Key: "keep_days", Flag: "keep-days", Of: func(t *Topic) any { return &t.KeepDays }, Default: DefaultKeepDays,
		Usage: "days to keep events (0: forever)",
		Check: func(t *Topic) error { return between("keep_days", t.KeepDays, 0, MaxKeepDays) }},
	{Key: "anonymise.after_days", Flag: "anonymise-after", Of: func(t *Topic) any { return &t.Anonymise.AfterDays },
		Usage: "days after which the fields of --anonymise are cleared (0: never)",
		Check: func(t *Topic) error {
			return between("anonymise after_days", t.Anonymise.AfterDays, 0, MaxKeepDays)
		}},
	{Key: "anonymise.fields", Flag: "anonymise", Of: func(t *Topic) any { return &t.Anonymise.Fields },
		Usage: "`FIELDS` to clear in older events: columns, promoted fields, attributes.NAME"},
	{Key: "cold_after_days", Flag: "cold-after-days", Of: func(t *Topic) any { return &t.ColdAfterDays },
		Usage: "days after which closed shards move to the cold volume of ClickHouse, where they are read, erased and kept as before (0: never)",
		Check: func(t *Topic) error { return between("cold_after_days", t.ColdAfterDays, 0, MaxKeepDays) }},
	{Key: "pii", Flag: "pii", Of: func(t *Topic) any { return &t.PII },
		Usage: fmt.Sprintf("set the privacy rule of a field, `FIELD:RULE` (FIELD: alone takes it back); rules: %v", PrivacyRules)},
	{Key: "metrics", Flag: "metric", Of: func(t *Topic) any { return &t.Metrics }, Only: kinds.Metric, Check: (*Topic).checkMetrics,
		Usage: "describe a metric as `YAML`: {name: cpu, unit: '%', points: gauge, type: double, labels: [host, region], defaults: {region: eu}}"},
	{Key: "strict", Flag: "strict", Of: func(t *Topic) any { return &t.Strict }, Only: kinds.Metric,
		Usage: "refuse metrics that are not described: `true` or false"},
	{Key: "body_limit", Flag: "body-limit", Of: func(t *Topic) any { return &t.BodyLimit }, Size: true, Default: uint64(DefaultBodyLimit), Only: kinds.Audit,
		Usage: fmt.Sprintf("`SIZE` up to which before and after are kept, at most %dKiB (default %dKiB); of longer ones length and SHA-256", MaxBodyLimit>>10, DefaultBodyLimit>>10),
		Check: (*Topic).checkBodyLimit},
	{Key: "documents.ids", Flag: "ids", Of: func(t *Topic) any { return &t.Documents.IDs }, Default: IDsAny, Only: kinds.Document, Frozen: "declare another topic",
		Usage: fmt.Sprintf("which `IDS` documents have: %s or %s (default %s); cannot be changed later", IDsAny, IDsGenerated, IDsAny),
		Check: func(t *Topic) error {
			if ids := t.Documents.IDs; ids != IDsAny && ids != IDsGenerated {
				return fmt.Errorf("documents: ids is %q, it must be %s or %s", ids, IDsAny, IDsGenerated)
			}
			return nil
		}},
	{Key: "documents.id_length", Flag: "id-length", Of: func(t *Topic) any { return &t.Documents.IDLength }, Only: kinds.Document, Frozen: "declare another topic",
		Usage: fmt.Sprintf("`CHARACTERS` of a generated id, 4 to 128 (default %d); cannot be changed later", DefaultIDLength)},
	{Key: "documents.hot_for", Flag: "hot-for", Of: func(t *Topic) any { return &t.Documents.HotFor }, Default: DefaultHotFor, Only: kinds.Document,
		Usage: fmt.Sprintf("`LENGTH` of time a changed document stays in NATS (default %s, which is also the least: shorter ones are as that)", DefaultHotFor)},
	{Key: "documents.max_documents", Flag: "max-documents", Of: func(t *Topic) any { return &t.Documents.MaxDocuments }, Default: DefaultMaxDocuments, Only: kinds.Document,
		Usage: fmt.Sprintf("`NUMBER` of documents there may be (default %d)", DefaultMaxDocuments),
		Check: func(t *Topic) error { return between("documents: max_documents", t.Documents.MaxDocuments, 1, 1<<40) }},
	{Key: "documents.max_bytes", Flag: "max-bytes", Of: func(t *Topic) any { return &t.Documents.MaxBytes }, Default: MaxDocumentBytes, Only: kinds.Document,
		Usage: fmt.Sprintf("`BYTES` a document may have, at most and unless given %d", MaxDocumentBytes),
		Check: func(t *Topic) error {
			return between("documents: max_bytes", t.Documents.MaxBytes, 1, MaxDocumentBytes)
		}},
	{Key: "documents.user_field", Flag: "user-field", Of: func(t *Topic) any { return &t.Documents.UserField }, Only: kinds.Document,
		Usage: "`KEY` of a document's body that says whose data it is, for erasure",
		Check: func(t *Topic) error {
			if n := len(t.Documents.UserField); n > MaxAttrKeyBytes {
				return fmt.Errorf("documents: user_field has %d bytes, the limit is %d", n, MaxAttrKeyBytes)
			}
			return nil
		}},
}

// value is the option's value in t.
func (o *Option) value(t *Topic) reflect.Value { return reflect.ValueOf(o.Of(t)).Elem() }

// given reports whether t says something of the option.
func (o *Option) given(t *Topic) bool { return !o.value(t).IsZero() }

// has reports whether topics of t's kind have the option.
func (o *Option) has(t *Topic) bool { return o.Only == "" || o.Only == t.Kind }

// setOptions fills in the defaults of what t does not say.
func (t *Topic) setOptions() {
	for i := range Options {
		if o := &Options[i]; o.Default != nil && o.has(t) && !o.given(t) {
			o.value(t).Set(reflect.ValueOf(o.Default))
		}
	}
}

// validateOptions reports the first option that is wrong by itself.
func (t *Topic) validateOptions() error {
	for i := range Options {
		switch o := &Options[i]; {
		case !o.has(t) && o.given(t):
			return fmt.Errorf("%s: only a topic of kind %s has it, and this one is of kind %s", o.Key, o.Only, t.Kind)
		case o.Check != nil && o.has(t):
			if err := o.Check(t); err != nil {
				return err
			}
		}
	}
	return nil
}

// frozen reports the first option of the live topic t that want changes and that cannot
// change.
func (t *Topic) frozen(want *Topic) error {
	for i := range Options {
		o := &Options[i]
		if o.Frozen == "" {
			continue
		}
		was, will := o.value(t), o.value(want)
		empty := was.Kind() == reflect.Slice && was.Len() == 0 && will.Len() == 0 // nil or not
		if !empty && !reflect.DeepEqual(was.Interface(), will.Interface()) {
			verb := "%v"
			if was.Kind() == reflect.String {
				verb = "%q"
			}
			return fmt.Errorf("%s is "+verb+" and cannot become "+verb+"; %s", o.Key, was.Interface(), will.Interface(), o.Frozen)
		}
	}
	return nil
}
