package billing

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/almanac-events/almanac/query/usage"
	"github.com/almanac-events/almanac/schemas"
)

// service is the service of published events.
const service = "almanac"

// head is an event about the month.
func (r *Request) head(typ, message string, attrs ...schemas.Attr) schemas.Event {
	return schemas.Event{Service: service, Type: typ, Message: message,
		Attrs: append([]schemas.Attr{schemas.String(schemas.AttrBilledTopic, r.Topic), schemas.String(schemas.AttrBilledMonth, r.Month.String())}, attrs...)}
}

func count(name string, n int) schemas.Attr { return schemas.String(name, strconv.Itoa(n)) }

// bucketEvent begins the frame of a bucket.
func (r *Request) bucketEvent(round, bucket, buckets int) schemas.Event {
	return r.head(schemas.TypeBucket, fmt.Sprintf("round %d of %s of %s, bucket %d of %d", round, r.Month, r.Topic, bucket+1, buckets),
		count(schemas.AttrBillRound, round), count(schemas.AttrBillBucket, bucket), count(schemas.AttrBillBuckets, buckets),
		schemas.String(schemas.AttrBillGroup, string(r.GroupBy)), schemas.String(schemas.AttrBillMeasure, string(r.Measure)))
}

// billEvent is a bill.
func (r *Request) billEvent(k Key, b *usage.Bill, round int, run string) schemas.Event {
	e := r.head(schemas.TypeBill, fmt.Sprintf("%s of %s: usage %s, size %s", k, r.Month, b.Usage, b.SizeEnd),
		count(schemas.AttrBillRound, round), count(schemas.AttrBillRevision, 0), schemas.String(schemas.AttrBillRun, run))
	e.UserID = k.Customer
	e.Attrs = append(e.Attrs, keyAttrs(k)...)
	e.Attrs = append(e.Attrs, billAttrs("", b)...)
	return e
}

// Correction is a bill of a closed month that moved.
type Correction struct {
	Key
	Revision int        `json:"revision"`
	Was      usage.Bill `json:"was"`
	Now      usage.Bill `json:"now"`
	// Since are the diffs that count and were stored after what was published, the oldest
	// first; More: there are more. None: rows were taken out, or moved to another key.
	Since []usage.Diff `json:"since"`
	More  bool         `json:"since_more,omitempty"`
	// Unknown: the positions that the bill stands on are not there.
	Unknown bool `json:"since_unknown,omitempty"`
}

// Limits of what a correction names.
const (
	maxSince      = 100
	maxSinceBytes = 16 << 10
)

// correctionEvent is a correction.
func (r *Request) correctionEvent(c *Correction, round int, run string) schemas.Event {
	since, more := c.Since, c.More
	text, _ := json.Marshal(since) // texts, numbers and times
	for len(text) > maxSinceBytes {
		since, more = since[:len(since)/2], true
		text, _ = json.Marshal(since)
	}
	if c.Unknown {
		text = nil
	}
	e := r.head(schemas.TypeCorrection, fmt.Sprintf("%s of %s: usage %s was %s", c.Key, r.Month, c.Now.Usage, c.Was.Usage),
		count(schemas.AttrBillRound, round), count(schemas.AttrBillRevision, c.Revision), schemas.String(schemas.AttrBillRun, run), schemas.String(schemas.AttrBillSince, string(text)))
	if more {
		e.Attrs = append(e.Attrs, schemas.String(schemas.AttrBillMore, "true"))
	}
	e.UserID = c.Customer
	e.Attrs = append(e.Attrs, keyAttrs(c.Key)...)
	e.Attrs = append(e.Attrs, billAttrs("", &c.Now)...)
	e.Attrs = append(e.Attrs, billAttrs(schemas.BillWas, &c.Was)...)
	return e
}

// maxPositions are the shards that one event names.
const maxPositions = 1000

// positionsEvents say what a run stands on.
func (r *Request) positionsEvents(run string, at usage.Positions) (out []schemas.Event) {
	var parts []usage.Positions
	for ref, pos := range at {
		if n := len(parts); n == 0 || len(parts[n-1]) == maxPositions {
			parts = append(parts, usage.Positions{})
		}
		parts[len(parts)-1][ref] = pos
	}
	if len(parts) == 0 {
		parts = []usage.Positions{{}}
	}
	for i, part := range parts {
		text, _ := json.Marshal(positionsText(part)) // texts and numbers
		out = append(out, r.head(schemas.TypePositions, fmt.Sprintf("%d shards of %s were read for %s", len(at), r.Topic, r.Month),
			schemas.String(schemas.AttrBillRun, run), count(schemas.AttrBillPart, i), count(schemas.AttrBillParts, len(parts)), schemas.String(schemas.AttrBillAt, string(text))))
	}
	return out
}

func keyAttrs(k Key) []schemas.Attr {
	return []schemas.Attr{
		schemas.String(schemas.AttrBillMeter, k.Meter), schemas.String(schemas.AttrBillProvider, k.Provider),
		schemas.String(schemas.AttrBillSpace, k.Space), schemas.String(schemas.AttrBillCustomer, k.Customer),
	}
}

// billAttrs are the numbers of a bill, under a prefix.
func billAttrs(prefix string, b *usage.Bill) []schemas.Attr {
	return []schemas.Attr{
		schemas.String(prefix+schemas.AttrBillSizeStart, b.SizeStart), schemas.String(prefix+schemas.AttrBillSizeEnd, b.SizeEnd),
		schemas.String(prefix+schemas.AttrBillUsage, b.Usage), schemas.String(prefix+schemas.AttrBillAverage, b.Average),
		schemas.String(prefix+schemas.AttrBillCauses, strconv.FormatUint(b.Causes, 10)), schemas.String(prefix+schemas.AttrBillRepeats, strconv.FormatUint(b.Repeats, 10)),
		schemas.String(prefix+schemas.AttrBillAnomaly, strconv.FormatBool(b.Anomaly)),
	}
}

// bill reads the numbers of a bill under a prefix, and its key.
func (e entry) bill(prefix string) (b usage.Bill, err error) {
	n, err := e.numbers(prefix+schemas.AttrBillCauses, prefix+schemas.AttrBillRepeats)
	if err != nil {
		return b, err
	}
	return usage.Bill{
		Meter: e[schemas.AttrBillMeter], Provider: e[schemas.AttrBillProvider], Space: e[schemas.AttrBillSpace], Customer: e[schemas.AttrBillCustomer],
		SizeStart: e[prefix+schemas.AttrBillSizeStart], SizeEnd: e[prefix+schemas.AttrBillSizeEnd], Usage: e[prefix+schemas.AttrBillUsage], Average: e[prefix+schemas.AttrBillAverage],
		Causes: uint64(n[0]), Repeats: uint64(n[1]), Anomaly: e[prefix+schemas.AttrBillAnomaly] == "true",
	}, nil
}
