package tables

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/frame"
)

// MaxFrames is how many frames one insert takes. The statement names where each begins, in
// some 20 bytes, and ClickHouse takes 128 KiB of it in an address.
const MaxFrames = 2_000

// Frame is a frame of a shard, as an insert brings it.
type Frame struct {
	Pos     uint64
	Rows    int // by its headers
	Payload []byte
}

// The columns that sourceOf adds to those of an event: the number of the row within the
// insert, from 0, and the position of its frame.
const (
	colRow = "_row"
	colPos = "_pos"
)

// sourceOf is a subquery for the rows of frames, which are the body of the statement: with the
// columns of withDefaults, and colRow and colPos. Both count what came: they must be
// taken before anything is filtered.
//
// The number alone tells the position. A block
// of ClickHouse is not a frame: small frames are read as one block.
func sourceOf(t *schemas.Topic, schema int, frames []Frame) string {
	starts, positions := make([]string, len(frames)), make([]string, len(frames))
	for i, at := 0, 0; i < len(frames); i++ {
		starts[i], positions[i] = strconv.Itoa(at), strconv.FormatUint(frames[i].Pos, 10)
		at += frames[i].Rows
	}
	number := "rowNumberInAllBlocks() AS " + colRow
	pos := fmt.Sprintf("transform(roundDown(%s, [%s] AS _starts), _starts, [%s]) AS %s", colRow, strings.Join(starts, ","), strings.Join(positions, ","), colPos)
	structure := strings.ReplaceAll(t.FrameStructure(schema), "'", "\\'")
	return fmt.Sprintf("(%s FROM input('%s'))", withDefaults(t, schema, number, pos), structure)
}

// whole holds for the rows of sourceOf that are the frames'. It refuses the statement when they
// are not as many as the frames' headers say: frame.End, which bodyOf sends last,
// must be the row after them.
func whole(frames []Frame) string {
	rows := 0
	for i := range frames {
		rows += frames[i].Rows
	}
	return fmt.Sprintf("throwIf((%s = %d) != (%s = fromUnixTimestamp64Nano(0, 'UTC')), '%s') = 0 AND %[1]s != %[2]d", colRow, rows, schemas.ColTs, textRows)
}

// bodyOf is what is sent of frames.
func bodyOf(frames []Frame) ([][]byte, error) {
	if len(frames) == 0 || len(frames) > MaxFrames {
		return nil, fmt.Errorf("%w: %d frames, an insert takes 1 to %d", ErrRows, len(frames), MaxFrames)
	}
	payloads := make([][]byte, 0, len(frames)+1)
	for i := range frames {
		payloads = append(payloads, frames[i].Payload)
	}
	return append(payloads, frame.End()), nil
}
