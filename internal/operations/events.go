package operations

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/almanac-events/almanac/internal/access"
	"github.com/almanac-events/almanac/internal/intake"
	"github.com/almanac-events/almanac/query"
)

const ndjson = "application/x-ndjson"

var (
	order      = Param{Name: "order", Kind: Word, Default: "desc", Words: []string{"desc", "asc"}, Help: "desc (newest first) or asc"}
	someTopics = Param{Name: "topic", Kind: Texts, Required: true, Help: fmt.Sprintf("a `TOPIC`; given for each, 1 to %d", query.MaxSearchTopics)}
)

// Events, one by one.
var (
	Events = Operation{
		Tool: "search", Method: http.MethodGet, Path: "/v1/topics/{topic}/events", Summary: "A page of events", Right: Right{Action: access.Read}, Rows: LimitedRows, Access: Reads,
		Params: []Param{
			inTopic, from, to, where, cursor, counts(atMost("how many events at most", query.MaxLimit), query.DefaultLimit), fields,
			order,
		},
		Answers: []Answer{{Code: http.StatusOK, Type: "Page", Media: []string{ndjson, "text/csv"}, Headers: []string{"Almanac-Cursor", "Almanac-Back"}}},
	}
	Search = Operation{
		Tool: "search_topics", Method: http.MethodGet, Path: "/v1/events", Summary: "A page of the events of several topics, merged by time", Right: Right{Action: access.Read}, Rows: LimitedRows, Access: Reads,
		Params: []Param{
			someTopics, from, to, helped(where, "`FILTER` over what each of the topics has"), cursor, counts(atMost("how many events at most", query.MaxLimit), query.DefaultLimit), fields, order,
		},
		Answers: ok("SearchPage"),
	}
	SendEvents = Operation{
		Method: http.MethodPost, Path: "/v1/topics/{topic}/events", Summary: "Store events", Right: Right{Action: access.Send}, Access: Writes,
		Params: []Param{
			inTopic,
			{Name: "Idempotency-Key", In: Header, MaxBytes: 256, Help: "the same key and body are stored once; another body under the key is refused (422)"},
			{Name: "ack", Words: []string{"none", "stream", "stored"}, Help: "when to answer: at once, on disk, in SQL"},
			{Name: "refuse", Words: []string{"lines", "all"}, Help: "all refuses the request where one line is refused"},
			{Name: "format", Words: intake.Formats, Help: "`FORMAT` of the input", Note: "; that of the content type unless told"},
			{Name: "multiline", Help: "`REGEX` that begins a record; other lines belong to the one before, up to a second of silence (text)"},
			{Name: "ts_field", Help: "`FIELD` that holds the time; of several, parted by commas, the first that a record has (default: ts, time, timestamp or @timestamp)"},
			{Name: "ts_format", Help: "`FORM` of times: " + strings.Join(intake.TsFormatNames(), ", ") + ", or a Go layout"},
			{Name: "require_ts", Kind: Switch, Help: "refuse records without a time, or with =false give them now (default: refused with --ts-field or --ts-format, else now)", Note: "; those that got now are counted as no_time"},
			{Name: "delimiter", Help: "`CHARACTER` between the cells of a csv row, such as ; or \\t (default: a comma)"},
			{Name: "tz", Default: "UTC", Help: "`ZONE` of times that name none, such as Europe/Berlin or Local"},
			{Name: "year", Kind: Number, Help: "`YEAR` of the first record, for times without one (default: told by the clock)"},
			{Name: "user_field", Help: "`FIELD` that becomes user_id"},
			{Name: "user_regex", Help: "`REGEX` whose one group is user_id (text)"},
			{Name: "extract", Help: "`REGEX` whose named groups become fields (text)"},
			{Name: "drop_raw", Kind: Switch, Help: "keep only what --extract names, and not the whole line as message (text)"},
			{Name: "service", Help: "`NAME` for events without a service"},
			{Name: "type", Help: "`NAME` for events without a type"},
			{Name: "level", Help: "`NAME` for events without a level"},
		},
		Body:    &Body{Media: []string{ndjson, "application/json", "text/plain", "text/csv"}},
		Answers: append(ok("Accepted"), accepted("Accepted")),
		Refused: []int{http.StatusUnprocessableEntity, http.StatusUnsupportedMediaType}, Refusal: "RefusedLines",
	}
	Event = Operation{
		Tool: "event", Method: http.MethodGet, Path: "/v1/topics/{topic}/events/{ts}/{id}", Summary: "One event", Right: Right{Action: access.Read}, Rows: LimitedRows, Access: Reads,
		Params: []Param{inTopic, eventTs, eventID}, Answers: ok("Event"),
	}
	Around = Operation{
		Tool: "around", Method: http.MethodGet, Path: "/v1/topics/{topic}/around/{ts}/{id}", Summary: "An event and its neighbours", Right: Right{Action: access.Read}, Rows: LimitedRows, Access: Reads,
		Params: []Param{
			inTopic, eventTs, eventID,
			{Name: "n", Kind: Number, Least: 1, Most: query.MaxAround, Help: "how many events on each side"},
			where,
		},
		Answers: ok("Around"),
	}
	Tail = Operation{
		Method: http.MethodGet, Path: "/v1/topics/{topic}/tail", Summary: "Events as they are routed", Right: Right{Action: access.Read}, Rows: LimitedRows, Access: Reads,
		Params: []Param{
			inTopic, where, fields,
			{Name: "from_pos", Help: "`POSITION` to go on behind (default: from now on)", Note: "; as Last-Event-ID. It is refused where what it names is lost"},
			{Name: "since", Flag: "from", Kind: Time, Help: "`TIME` from when on what was routed is shown"},
			{Name: "Last-Event-ID", In: Header, Help: "position to go on behind"},
		},
		Answers: []Answer{{Code: http.StatusOK, Media: []string{"text/event-stream", ndjson}, Headers: []string{"Almanac-Position"}}},
	}
)
