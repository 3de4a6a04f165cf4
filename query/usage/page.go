package usage

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/almanac-events/almanac/schemas"
)

// Limits of a page of bills or of sizes: how many, and the bytes of their texts, of which names may be long.
const (
	MaxPage      = 10_000
	maxPageBytes = 8 << 20
	// maxPlaceBytes bounds a cursor, which is in the address of the next request.
	maxPlaceBytes = 12 << 10
)

// errPageFull ends a page.
var errPageFull = errors.New("the page is full")

// Page reads a page of the bills of a request, in the order of Bills. limit is 1 to MaxPage, 0 means MaxPage. cursor is of the page
// before, empty begins. Each page is of what is stored when it is read, and has each bill whole.
func (r *Reader) Page(ctx context.Context, req Request, limit int, cursor string) (*Report, error) {
	req.GroupBy = req.GroupBy.InOrder()
	if limit == 0 {
		limit = MaxPage
	}
	if limit < 1 || limit > MaxPage {
		return nil, fmt.Errorf("%w: limit is %d, it must be 1 to %d", schemas.ErrRequest, limit, MaxPage)
	}
	var err error
	if req.after, err = decodeBillPlace(cursor, &req); err != nil {
		return nil, err
	}
	req.limit = limit + 1
	if err := req.check(); err != nil {
		return nil, err
	}
	page := newPage(&req, limit)
	if err := r.Bills(ctx, req, page.add); err != nil && !errors.Is(err, errPageFull) {
		return nil, err
	}
	return page.rep, nil
}

// page is one that is being filled.
type page struct {
	rep   *Report
	req   *Request
	limit int
	bytes int
}

func newPage(req *Request, limit int) *page {
	return &page{req: req, limit: limit, rep: &Report{Topic: req.Topic, From: req.From, To: req.To, Measure: req.Measure, GroupBy: req.GroupBy, Bills: []Bill{}}}
}

// add takes a bill, or ends the page before it. One bill is taken however long it is.
func (p *page) add(b Bill) error {
	p.bytes += b.textBytes()
	if n := len(p.rep.Bills); n == p.limit || n > 0 && p.bytes > maxPageBytes {
		return p.end()
	}
	p.rep.Bills = append(p.rep.Bills, b)
	return nil
}

// end has the page end with its last bill that a cursor can name: what stands for bytes that are not UTF-8 is another name than the one
// that orders, and an address has room for so much.
func (p *page) end() error {
	for n := len(p.rep.Bills); n > 0; n-- {
		place := placeOf(&p.rep.Bills[n-1], p.req)
		if cursor := place.encode(); place.exact() && len(cursor) <= maxPlaceBytes {
			p.rep.Bills, p.rep.Cursor = p.rep.Bills[:n], cursor
			return errPageFull
		}
	}
	return fmt.Errorf("%w: no page can go on behind these %d bills: their names are not UTF-8 or have more than some %d bytes; ask with a larger limit, group otherwise, or use `almanac usage`, which needs no pages",
		schemas.ErrRequest, len(p.rep.Bills), maxPlaceBytes/2)
}

// SizesPage is Page of sizes at an instant. next continues, and is empty on the last page.
func (r *Reader) SizesPage(ctx context.Context, q SizeRequest, limit int, cursor string) (sizes []Size, next string, err error) {
	req, err := q.Bills()
	if err != nil {
		return nil, "", err
	}
	page, err := r.Page(ctx, req, limit, cursor)
	if err != nil {
		return nil, "", err
	}
	sizes = make([]Size, len(page.Bills))
	for i := range page.Bills {
		sizes[i] = page.Bills[i].size(req.To)
	}
	return sizes, page.Cursor, nil
}

// textBytes are the bytes of a bill's texts.
func (b *Bill) textBytes() int {
	return len(b.Meter) + len(b.Provider) + len(b.Space) + len(b.Customer) + len(b.SizeStart) + len(b.SizeEnd) + len(b.Usage) + len(b.Average)
}

// billPlace is where a page of bills ended: the keys of its last, or where its span of time begins.
type billPlace struct {
	group GroupBy
	keys  []string
	from  int64 // Unix ms
}

// placeOf is the place of a bill.
func placeOf(b *Bill, req *Request) *billPlace {
	p := &billPlace{group: req.GroupBy}
	if req.byTime() {
		p.from = b.From.UnixMilli()
		return p
	}
	for _, column := range (&statement{req: req}).keys() {
		p.keys = append(p.keys, *b.key(column))
	}
	return p
}

// exact reports whether the keys are as they are stored.
func (p *billPlace) exact() bool {
	return !slices.ContainsFunc(p.keys, func(key string) bool { return strings.ContainsRune(key, utf8.RuneError) })
}

func (p *billPlace) encode() string {
	text, _ := json.Marshal(slices.Concat([]string{string(p.group), strconv.FormatInt(p.from, 10)}, p.keys))
	return base64.RawURLEncoding.EncodeToString(text)
}

// decodeBillPlace reads a cursor; nil for none. One that is of another group would leave bills out.
func decodeBillPlace(cursor string, req *Request) (*billPlace, error) {
	if cursor == "" {
		return nil, nil
	}
	var parts []string
	text, err := base64.RawURLEncoding.DecodeString(cursor)
	if err == nil {
		err = json.Unmarshal(text, &parts)
	}
	if err == nil && len(parts) < 2 {
		err = fmt.Errorf("it has %d parts", len(parts))
	}
	if err != nil {
		return nil, fmt.Errorf("%w: the cursor is not one of a page of bills: %w", schemas.ErrRequest, err)
	}
	p := &billPlace{group: GroupBy(parts[0]), keys: parts[2:]}
	p.from, err = strconv.ParseInt(parts[1], 10, 64)
	keys := len((&statement{req: req}).keys())
	if req.byTime() {
		keys = 0
	}
	if err != nil || p.group != req.GroupBy || len(p.keys) != keys {
		return nil, fmt.Errorf("%w: the cursor is of a page with group-by %q, and this request has %q; ask for all pages with the same", schemas.ErrRequest, p.group, req.GroupBy)
	}
	return p, nil
}

// afterPage is the condition of bills behind the page before, over their keys.
func (s *statement) afterPage(keys []string) string {
	if s.req.after == nil {
		return ""
	}
	params := make([]string, len(keys))
	for i, value := range s.req.after.keys {
		name := "after" + strconv.Itoa(i)
		s.params[name] = escapeParam(value)
		params[i] = "{" + name + ":String}"
	}
	return "tuple(" + strings.Join(keys, ", ") + ") > tuple(" + strings.Join(params, ", ") + ")"
}
