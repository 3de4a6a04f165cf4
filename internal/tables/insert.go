package tables

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/frame"
	"github.com/almanac-events/almanac/schemas/sql"
)

// Bounds of one insert, which is one block and one part.
const (
	// BatchRows and BatchBytes are where sinks begin another insert, unless configured
	// otherwise. BatchBytes is of frames as they are stored.
	BatchRows  = 200_000
	BatchBytes = 32 << 20
	// MaxRawBytes bounds the frames decompressed. ClickHouse cuts an insert into several
	// parts somewhere above 400 MiB of memory, and a crash between two of them would
	// lose the second: the first carries the head already.
	MaxRawBytes = 128 << 20
)

// Insert is frames of one shard that follow its head, to be stored as one part.
type Insert struct {
	Topic  *schemas.Topic
	Schema int // schema version of every frame
	Month  schemas.Month
	Shard  schemas.Shard
	// Head is the position before the first frame.
	Head uint64
	// Attempt counts inserts from this head whose token was burnt.
	Attempt int
	// Frames in the order of their positions.
	Frames []Frame
	// Absent is how many positions up to the head ClickHouse has no rows of, because
	// those that carried them are gone on purpose; usually none.
	Absent uint64
	// Keep, when set, holds for the rows that may be stored: the ledger covers these
	// frames. Other frames pass untouched. The head is then the last frame's of which a row
	// was kept.
	Keep Condition
	// UUID, when set, is the table that the rows are for (DB.UUID). Another one under the name is ErrReplaced.
	UUID string
}

// InsertDeadline is how long the server may take from planning an insert until
// its rows flow. A stalled insert is refused by the server's own clock, long
// before the deduplication window could have forgotten its token.
const InsertDeadline = 20 * time.Second

// Last is the position of the last frame: the head once they are all stored.
func (in *Insert) Last() uint64 { return in.Frames[len(in.Frames)-1].Pos }

// Token is the insert's deduplication token. It names the predecessor, not the
// range.
func (in *Insert) Token() string {
	return fmt.Sprintf("%s:%s:%d:%d", in.Topic.Name, in.Shard, in.Head, in.Attempt)
}

// queryID is the same for all inserts that follow what is stored. ClickHouse runs one
// query of an id at a time, so the next one's assertion sees what this one did.
// The token alone would not do: for ClickHouse it is another one when the insert
// has another number of frames, and it is taken before the rows can be seen.
func (in *Insert) queryID(database string) string {
	return fmt.Sprintf("%s%s:%d", queryPrefix(database, in.Topic.Name), in.Shard, in.Head-in.Absent)
}

// queryPrefix begins the query_id of every insert into a topic's table.
func queryPrefix(database, topic string) string { return "almanac:" + database + ":" + topic + ":" }

// statement is the insert with its assertions. Only numbers and validated names are spliced in.
func (in *Insert) statement(database string) string {
	return sql.Insert{
		Table: sql.QuotedTable(database, in.Topic.Name), Columns: quotedList(in.Topic.Columns(in.Schema)),
		Month: uint32(in.Month), Shard: uint64(in.Shard), Head: in.Head - in.Absent,
		Frames: sourceOf(in.Topic, in.Schema, in.Frames), Whole: whole(in.Frames), Pos: colPos,
		Seconds: int(InsertDeadline.Seconds()), Keep: in.Keep.SQL, Moved: TextHeadMoved, Tardy: textTooSlow,
		Same: sql.NewSameTable(database, in.Topic.Name, in.UUID, textReplaced),
	}.SQL()
}

// quotedList are columns as a list.
func quotedList(columns []string) string {
	quoted := make([]string, len(columns))
	for i, c := range columns {
		quoted[i] = sql.QuoteName(c)
	}
	return strings.Join(quoted, ", ")
}

// insertSettings make one insert one block, one part, answered when it is on
// disk.
var insertSettings = map[string]string{
	"decompress":                                 "1",
	"async_insert":                               "0",
	"max_threads":                                "1",
	"max_insert_threads":                         "1",
	"min_insert_block_size_rows":                 "4000000", // far above a batch's rows, so that
	"min_insert_block_size_bytes":                "4000000000",
	"max_insert_block_size":                      "4000000", // it is never cut in two
	"deduplicate_insert":                         "enable",
	"max_partitions_per_insert_block":            "1",
	"input_format_native_allow_types_conversion": "0",
	"optimize_move_to_prewhere":                  "0", // of the assertion; see planOnly
	// Machine code for the assertions, which are one value each: making it took 0.1 to
	// 0.15 s of CPU for each table after every start (of 250 inserts into ten tables,
	// twice in turn), while inserts wait.
	"compile_expressions": "0",
}

// insertValues are the settings of an insert.
func insertValues() url.Values {
	q := url.Values{}
	for k, v := range insertSettings {
		q.Set(k, v)
	}
	return q
}

// Insert sends the frames. Whatever it returns, only Head tells what is stored.
func (db *DB) Insert(ctx context.Context, in *Insert) error {
	q := insertValues()
	q.Set("insert_deduplication_token", in.Token())
	q.Set(paramQueryID, in.queryID(db.Database))
	if err := db.post(ctx, q, Condition{in.statement(db.Database), in.Keep.Params}, in.Frames); err != nil {
		return fmt.Errorf("insert into %s after %d: %w", schemas.PublicShardName(in.Topic.Name, in.Month, in.Shard), in.Head, err)
	}
	return nil
}

// post sends frames as what a statement inserts, one after the other. A statement that is too long
// for the address goes before them, as a block of its own: ClickHouse unpacks all that comes, and
// what follows the line of the format is data.
func (db *DB) post(ctx context.Context, q url.Values, statement Condition, frames []Frame) error {
	payloads, err := bodyOf(frames)
	if err != nil {
		return err
	}
	if statement, err = carried(q, statement); err != nil {
		return err
	}
	setParams(q, statement.Params)
	if len(statement.SQL) > maxAddressBytes {
		payloads = append([][]byte{frame.Block([]byte(statement.SQL + "\n"))}, payloads...)
	} else {
		q.Set(paramQuery, statement.SQL)
	}
	size := 0
	readers := make([]io.Reader, len(payloads))
	for i, f := range payloads {
		readers[i], size = bytes.NewReader(f), size+len(f)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, db.base+"/?"+q.Encode(), io.MultiReader(readers...))
	if err != nil {
		return err
	}
	req.ContentLength = int64(size)
	body, err := db.do(req)
	if err != nil {
		return err
	}
	return body.Close()
}

// do sends a request with credentials and turns a refusal into *Error.
func (db *DB) do(req *http.Request) (io.ReadCloser, error) { return db.doAs(req, db.user, db.pass) }

// doAs is do under another account.
func (db *DB) doAs(req *http.Request, user, password string) (io.ReadCloser, error) {
	resp, err := db.answered(req, user, password)
	if err != nil {
		return nil, err
	}
	return resp.Body, nil
}

// answered is an answer that is not a refusal.
func (db *DB) answered(req *http.Request, user, password string) (*http.Response, error) {
	req.Header.Set("X-ClickHouse-User", user)
	req.Header.Set("X-ClickHouse-Key", password)
	resp, err := db.http.Do(req) //nolint:gosec // G704: the settings name the server
	if err != nil {
		return nil, fmt.Errorf("ClickHouse at %s: %w", db.base, bare(err))
	}
	if resp.StatusCode == http.StatusOK {
		return resp, nil
	}
	defer func() { _ = resp.Body.Close() }()
	text, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBytes))
	return nil, refusalText(resp.Header.Get("X-ClickHouse-Exception-Code"), string(text))
}

// maxErrorBytes bounds how much of a refusal is read.
const maxErrorBytes = 64 << 10

func refusalText(code, text string) error {
	n, _ := strconv.Atoi(code)
	text = firstLine(text)
	if _, after, ok := strings.Cut(text, "DB::Exception: "); ok {
		text = after
	}
	return &Error{Code: n, Text: text}
}

// bare takes the URL, which holds the whole statement, out of a transport error.
func bare(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}
