package send

import (
	"context"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"

	"github.com/almanac-events/almanac/internal/intake"
)

// Input is one file to read, or what stands for one.
type Input struct {
	Name   string
	Reader io.Reader
}

// Info is what the system says of an input that is a file of whatever sort, else nil.
func (in *Input) Info() os.FileInfo {
	if f, ok := in.Reader.(*os.File); ok {
		if info, err := f.Stat(); err == nil {
			return info
		}
	}
	return nil
}

// Regular reports whether an input is a file with an end.
func (in *Input) Regular() bool {
	info := in.Info()
	return info != nil && info.Mode().IsRegular()
}

// silence is how long an input gives nothing until its last record is taken for whole, and is sent: where
// records have many lines only the next one tells where one ends.
const silence = time.Second

// eachFile calls read with the content of each file, unpacked, and how many lines those before
// it had. read returns how many this one has. Where pauses is set it hears of silences (intake.ErrPause) of
// what is not a file.
func eachFile(ctx context.Context, files []Input, t *Stats, pauses bool, read func(name string, plain io.Reader, before int) (lines int, err error)) error {
	before := 0
	for _, in := range files {
		plain, err := intake.Unpack(t.counting(in.Reader))
		if err != nil {
			return fmt.Errorf("%s: %w", in.Name, err)
		}
		if pauses && !in.Regular() {
			plain = intake.NewPauses(ctx, plain, silence)
		}
		lines, err := read(in.Name, plain, before)
		if err != nil {
			return err
		}
		before += lines
		// All files were opened at the start: each is closed as it ends, stdin too.
		if c, ok := in.Reader.(io.Closer); ok {
			_ = c.Close()
		}
	}
	return nil
}

// counting counts the bytes read from r.
func (t *Stats) counting(r io.Reader) io.Reader { return countingReader{r, &t.bytes} }

type countingReader struct {
	io.Reader
	n *atomic.Int64
}

func (c countingReader) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.n.Add(int64(n))
	return n, err
}
