package operations

import (
	"fmt"
)

// Parameters of several operations.
var (
	inTopic  = Param{Name: "topic", In: Path, Required: true, Help: "the `TOPIC`", MaxBytes: 63}
	ofTopic  = Param{Name: "topic", Help: "only this `TOPIC`"}
	eventTs  = Param{Name: "ts", In: Path, Required: true, Help: "the time of an event, as it is in the event"}
	eventID  = Param{Name: "id", In: Path, Required: true, Help: "the id of an event"}
	from     = Param{Name: "from", Kind: Time, Help: "`TIME` at which the range begins"}
	to       = Param{Name: "to", Kind: End, Help: "`TIME` at which the range ends; an event of that time is not in it"}
	where    = Param{Name: "where", Help: "`FILTER` over columns, promoted fields and attributes"}
	cursor   = Param{Name: "cursor", Help: "`CURSOR` of the page before"}
	fields   = Param{Name: "fields", Kind: Names, Help: "`NAMES` of columns, promoted fields and attributes.x to show, with commas between"}
	waits    = Param{Name: "wait", Kind: Wait, Default: "15s", Help: "`TIME` without progress after which it no longer waits for what was accepted to be stored; 0: do not wait"}
	dryRun   = Param{Name: "dry_run", Kind: Switch, Help: "say what would be done and do nothing"}
	purge    = Param{Name: "purge", Kind: Switch, Help: "take the frames that hold such events out of the streams too"}
	ifNone   = Param{Name: "If-None-Match", In: Header, Help: "of a read: the ETag that is known. Of a write: *, the document must not exist"}
	seriesOf = helped(where, "only series that match a `FILTER` over type, service, user_id, unit and attributes.LABEL")
)

// atMost is the bound of a page.
func atMost(what string, most int) Param {
	return Param{Name: "limit", Kind: Number, Least: 1, Most: most, Help: fmt.Sprintf("%s, 1 to %d", what, most)}
}

// texts are words of a type of their own.
func texts[T ~string](words []T) []string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = string(w)
	}
	return out
}
