package lines

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"strings"

	"github.com/almanac-events/almanac/internal/intake"
	"github.com/almanac-events/almanac/schemas"
)

// formatJSON is an array of objects, or objects one after the other.
const formatJSON = "json"

// formatOf says how a body is to be read: as its parameter says, else its content type,
// else its first byte; "" where the type is one that no events are in. What clients send that say nothing
// of the body may be lines.
func formatOf(param, contentType string, body []byte) string {
	if param != "" {
		return param
	}
	mediaType, _, _ := mime.ParseMediaType(contentType)
	switch mediaType {
	case "application/x-ndjson", "application/ndjson", "application/jsonl", "application/x-jsonlines", "application/json-lines":
		return intake.FormatNDJSON
	case "application/logfmt", "text/logfmt":
		return intake.FormatLogfmt
	case "text/csv":
		return intake.FormatCSV
	case "text/plain":
		return intake.FormatText
	}
	switch {
	case mediaType == "", mediaType == "application/json", strings.HasSuffix(mediaType, "+json"), mediaType == "text/json":
	case mediaType == "application/x-www-form-urlencoded", mediaType == "application/octet-stream": // curl, and who does not know
	default:
		return ""
	}
	switch first := bytes.TrimLeft(body, "\xef\xbb\xbf \t\r\n"); {
	case len(first) > 0 && (first[0] == '{' || first[0] == '['):
		return formatJSON
	case mediaType == "application/json":
		return formatJSON
	}
	return intake.FormatText
}

// Record is a record of a body.
type Record struct {
	intake.Record
	// Element is its number in the array that the body is, from 1; 0 where it is none.
	Element int
}

// Decode calls each with every record of a body, in order; each may not keep the record's
// memory, and may keep what is in it. It is pure. Its error says
// that the body cannot be read on as a whole; one that each returns ends it too.
func Decode(body []byte, o intake.Options, each func(*Record) error) error {
	if o.Format == formatJSON {
		o.Format = intake.FormatNDJSON
		if !byLines(body) {
			return values(body, o, each)
		}
	}
	r := intake.NewReader(bytes.NewReader(body), o)
	var rec Record // one for all: each may not keep it
	for {
		var err error
		rec.Record, err = r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		withoutID(&rec)
		if err := each(&rec); err != nil {
			return err
		}
	}
}

// byLines says whether each line is a JSON value of its own: then a bad line costs no
// other.
func byLines(body []byte) bool {
	body = bytes.TrimPrefix(body, []byte("\xef\xbb\xbf"))
	body = bytes.TrimLeft(body, " \t\r\n")
	line, _, _ := bytes.Cut(body, []byte("\n"))
	return len(line) > 0 && line[0] == '{' && json.Valid(line)
}

// errBody: the body is not JSON from some place on.
var errBody = errors.New("malformed JSON")

// withoutID makes a client's id an attribute.
func withoutID(rec *Record) {
	if ev := &rec.Event; rec.Err == nil && !ev.ID.IsZero() {
		ev.Attrs = append(ev.Attrs, schemas.String(schemas.ColID, ev.ID.String()))
		ev.ID = schemas.ID{}
	}
}
