package tables

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/almanac-events/almanac/internal/tables/watchdog"
	"github.com/almanac-events/almanac/schemas"
)

var (
	// ErrHeadMoved: another sink stored frames of the shard first, or ClickHouse was
	// restored from an older copy. Read the head and go on from there.
	ErrHeadMoved = errors.New("the shard's head moved")
	// ErrReplaced: the topic's name has another table than the one that was looked at. It was removed and declared again, or rebuilt.
	ErrReplaced = errors.New("the topic's table was replaced meanwhile")
	// ErrTooSlow: the insert reached the server's pipeline later than
	// InsertDeadline after it began; nothing of it was stored.
	ErrTooSlow = errors.New("the insert came too late")
	// ErrRows: what came has not the rows that the frames' headers say, or it is more
	// frames than an insert takes. Nothing of the insert was stored.
	ErrRows = errors.New("the frames do not have the rows that their headers say")
	// ErrNoSpace: ClickHouse has no room on disk. Nothing of the insert was stored.
	ErrNoSpace = errors.New("ClickHouse's disk is full")
	// ErrBusy: too many parts, no memory just now, another insert after the same head
	// or another merge of the same parts is under way, or a drop of the parts ended one. Nothing was done.
	ErrBusy = errors.New("ClickHouse is overloaded; retry later")
	// ErrVanished: nothing answers on the connection, and over a new one the server
	// reports that it does not run the query. What became of an insert its head tells.
	ErrVanished = watchdog.ErrVanished
	// ErrUnreachable: the request got no answer. What became of an insert its head tells.
	ErrUnreachable = watchdog.ErrUnreachable
	// ErrNoTable: the topic's table was not made yet; Ensure makes it.
	ErrNoTable = errors.New("no such table")
	// ErrConsumed: insert after insert was answered OK and stored nothing, which no crash explains.
	ErrConsumed = errors.New("insert tokens keep being consumed")
	// ErrFrozen: a rebuild holds the topic's table. Nothing was stored.
	ErrFrozen = errors.New("a rebuild holds the table; if none runs, `almanac rebuild TOPIC --yes` ends what was begun and --abort gives it up")
	// ErrNameTaken: a table stands where a view belongs.
	ErrNameTaken = errors.New("the name is taken")
	// ErrDSN: the address of ClickHouse cannot be used.
	ErrDSN = errors.New("bad ClickHouse address")
	// ErrOtherEngine: another server than that which has the cluster's rows answers at the
	// address. It ran nothing.
	ErrOtherEngine = errors.New("another ClickHouse answers")
	// ErrForeignTable: a table or its database is of an engine on which an insert cannot be
	// asserted, as one with replicas.
	ErrForeignTable = errors.New("unsupported table engine")
	// ErrNoCold: a topic's closed shards are to move, and ClickHouse has no volume for them.
	ErrNoCold = errors.New("no cold volume")
	// ErrAccount: the server has no such account, or it has another password.
	ErrAccount = errors.New("ClickHouse refuses the account")
	// ErrOldServer: the server lacks what Almanac stands on.
	ErrOldServer = errors.New("ClickHouse is too old")

	errEscape = errors.New("a parameter is not escaped as ClickHouse reads it")
)

// otherEngine is an ErrOtherEngine that Establish found. It is a type of its own, so that it is
// found in what clickhouse-go makes of it.
type otherEngine struct{ text string }

// Error says what answers at the address, and what to do.
func (e *otherEngine) Error() string { return ErrOtherEngine.Error() + ": " + e.text }

// Unwrap returns ErrOtherEngine.
func (e *otherEngine) Unwrap() error { return ErrOtherEngine }

// Codes of ClickHouse's ErrorCodes.cpp that Almanac acts on.
const (
	codeUnknownTable   = 60
	codeSyntax         = 62
	codeUnknownDB      = 81
	codeTimeout        = 159
	codeTooManyQueries = 202
	codeAborted        = 236
	codeMemoryLimit    = 241
	codeSameQueryID    = 216
	codeNotEnoughSpace = 243
	codeTooManyParts   = 252
	codeCannotOptimize = 388
	codeThrowIf        = 395
	codeConstraint     = 469
	codeAuthentication = 516
)

// The texts of the insert's assertions.
const (
	TextHeadMoved = "almanac: head moved"
	textReplaced  = "almanac: another table"
	textTooSlow   = "almanac: too slow"
	textRows      = "almanac: rows do not add up"
)

// Error is a refusal by ClickHouse.
type Error struct {
	Code int
	Text string
}

// Syntax reports whether the statement was not understood.
func (e *Error) Syntax() bool { return e.Code == codeSyntax }

// Error says what ClickHouse said, without its stack.
func (e *Error) Error() string {
	if errors.Is(e.Unwrap(), ErrFrozen) {
		return ErrFrozen.Error()
	}
	if id := e.missingEngine(); id != "" {
		return fmt.Sprintf("%s: it is not engine %s, where this cluster's rows are; run `almanac doctor`", ErrOtherEngine, id)
	}
	text := fmt.Sprintf("ClickHouse refused (code %d): %s", e.Code, e.Text)
	if table, part := e.DamagedPart(); part != "" {
		text += fmt.Sprintf("; the part is damaged on disk: run ALTER TABLE %s DETACH PART '%s' in ClickHouse, then `almanac repair`, which stores its rows again", table, part)
	}
	return text
}

// thrown is the text of the assertion that failed; empty: none did. ClickHouse prints the
// statement's expression after it, and other assertions' texts are in there.
func (e *Error) thrown() (text string) {
	if e.Code != codeThrowIf {
		return ""
	}
	first := len(e.Text)
	for _, t := range []string{TextHeadMoved, textReplaced, textTooSlow, textRows} {
		if at := strings.Index(e.Text, t); at >= 0 && at < first {
			first, text = at, t
		}
	}
	return text
}

// missingEngine is the identity of the engine that the server was taken for and is not; empty:
// it refused something else.
func (e *Error) missingEngine() string {
	if m := engineMissing.FindStringSubmatch(e.Text); e.Code == codeUnknownDB && m != nil {
		return m[1]
	}
	return ""
}

// engineMissing finds the database that names an engine (schemas.EngineDatabase).
var engineMissing = regexp.MustCompile(`^Database \S*` + regexp.QuoteMeta(schemas.EngineDatabase("", "")) + `([0-9a-f]{16}) does not exist`)

// Unwrap names the refusals callers act on.
func (e *Error) Unwrap() error {
	switch e.thrown() {
	case TextHeadMoved:
		return ErrHeadMoved
	case textReplaced:
		return ErrReplaced
	case textTooSlow:
		return ErrTooSlow
	case textRows:
		return ErrRows
	}
	switch {
	case e.missingEngine() != "":
		return ErrOtherEngine
	case e.Code == codeConstraint && strings.Contains(e.Text, frozenConstraint):
		return ErrFrozen
	case e.Code == codeUnknownTable || e.Code == codeUnknownDB:
		return ErrNoTable
	case e.Code == codeNotEnoughSpace:
		return ErrNoSpace
	case e.Code == codeAuthentication:
		return ErrAccount
	case e.Code == codeTooManyParts || e.Code == codeMemoryLimit || e.Code == codeSameQueryID || e.Code == codeCannotOptimize ||
		e.Code == codeTooManyQueries || e.Code == codeTimeout || e.Code == codeAborted:
		return ErrBusy
	}
	return nil
}

// Class is what to do after an error.
type Class uint8

// The classes.
const (
	// Fine: there is no error.
	Fine Class = iota
	// Unreachable: the server did not answer. DB.Wait waits until it does; read the
	// head before anything else.
	Unreachable
	// Overloaded: the server works, but not on this now. Pause, then ask for the same
	// or for less.
	Overloaded
	// Moved: what the request assumed of the shard is no longer so, or it is not known
	// what became of it. Read the head and go on from there.
	Moved
	// Missing: the table or its database does not exist. Ensure makes it.
	Missing
	// Refused: the server refuses and will again; a person must look.
	Refused
	// Elsewhere: another server answers at the address. Establish says more, and when the
	// right one does again.
	Elsewhere
	// Foreign: the error is not ClickHouse's: a cancelled context, or another part.
	Foreign
)

// Classify returns what to do after err. Of errors that are joined the first class of
// the list above counts.
func Classify(err error) Class {
	refused := (*Error)(nil)
	exception := (*clickhouse.Exception)(nil)
	switch {
	case err == nil:
		return Fine
	case errors.Is(err, ErrUnreachable):
		return Unreachable
	case errors.Is(err, ErrOtherEngine):
		return Elsewhere
	case errors.Is(err, ErrBusy), errors.Is(err, ErrTooSlow), errors.Is(err, ErrNoSpace), errors.Is(err, clickhouse.ErrAcquireConnTimeout):
		return Overloaded
	case errors.Is(err, ErrHeadMoved), errors.Is(err, ErrReplaced), errors.Is(err, ErrVanished):
		return Moved
	case errors.Is(err, ErrNoTable):
		return Missing
	case errors.As(err, &refused):
		return Refused
	case errors.As(err, &exception):
		return Classify(Refusal(exception))
	}
	return Foreign
}
