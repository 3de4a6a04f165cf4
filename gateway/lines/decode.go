package lines

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"

	"github.com/almanac-events/almanac/intake"
	"github.com/almanac-events/almanac/schemas"
)

// formatJSON is an array of objects, or objects one after the other.
const formatJSON = "json"

// formatOf says how a body is to be read: as its parameter says, else its content type,
// else its first byte.
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
	switch first := bytes.TrimLeft(body, "\xef\xbb\xbf \t\r\n"); {
	case len(first) > 0 && (first[0] == '{' || first[0] == '['):
		return formatJSON
	case mediaType == "application/json":
		return formatJSON
	}
	return intake.FormatText
}

// Decode calls each with every record of a body, in order; each may not keep the record's
// memory, and may keep what is in it. It is pure. Its error says
// that the body cannot be read on as a whole; one that each returns ends it too.
func Decode(body []byte, o intake.Options, each func(*intake.Record) error) error {
	if o.Format == formatJSON {
		o.Format = intake.FormatNDJSON
		if !byLines(body) {
			return values(body, o, each)
		}
	}
	r := intake.NewReader(bytes.NewReader(body), o)
	var rec intake.Record // one for all: each may not keep it
	for {
		var err error
		rec, err = r.Next()
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

// values reads an array of objects, or objects one after the other.
func values(body []byte, o intake.Options, each func(*intake.Record) error) error {
	body = bytes.TrimPrefix(body, []byte("\xef\xbb\xbf"))
	d := json.NewDecoder(bytes.NewReader(body))
	array := bytes.HasPrefix(bytes.TrimLeft(body, " \t\r\n"), []byte("["))
	if array {
		if _, err := d.Token(); err != nil {
			return brokenJSON(body, d, err)
		}
	}
	line, counted := 1, 0
	for {
		if array && !d.More() {
			if _, err := d.Token(); err != nil { // the closing bracket
				return brokenJSON(body, d, err)
			}
			array = false
		}
		var raw json.RawMessage
		err := d.Decode(&raw)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return brokenJSON(body, d, err)
		}
		at := int(d.InputOffset()) - len(raw)
		line += bytes.Count(body[counted:at], []byte("\n"))
		counted = at
		rec := value(raw, line, o)
		if err := each(rec); err != nil {
			return err
		}
	}
}

// value reads one JSON value as a record.
func value(raw json.RawMessage, line int, o intake.Options) *intake.Record {
	// Without line ends it is a line of NDJSON, with all of that format's options.
	var one bytes.Buffer
	if bytes.ContainsAny(raw, "\r\n") {
		_ = json.Compact(&one, raw) // it was decoded, so it is valid
	} else {
		one.Write(raw)
	}
	rec, err := intake.NewReader(&one, o).Next()
	if err != nil {
		rec.Err = err
	}
	rec.Line, rec.Lines = line, 1+bytes.Count(raw, []byte("\n"))
	withoutID(&rec)
	return &rec
}

func brokenJSON(body []byte, d *json.Decoder, err error) error {
	at := d.InputOffset()
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		at = syntax.Offset
	}
	at = min(at, int64(len(body)))
	return fmt.Errorf("%w: line %d, byte %d of the body: %w", errBody, 1+bytes.Count(body[:at], []byte("\n")), at, err)
}

// errBody: the body is not JSON from some place on.
var errBody = errors.New("malformed JSON")

// withoutID makes a client's id an attribute.
func withoutID(rec *intake.Record) {
	if ev := &rec.Event; rec.Err == nil && !ev.ID.IsZero() {
		ev.Attrs = append(ev.Attrs, schemas.String(schemas.ColID, ev.ID.String()))
		ev.ID = schemas.ID{}
	}
}
