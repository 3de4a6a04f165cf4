package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ClickHouse/ch-go/compress"
	"github.com/klauspost/compress/s2"
)

// Bounds of a search: a file is read whole, one at a time, and what is packed in it is read as deep as this.
const (
	maxSearched = 256 << 20
	maxUnpacked = 64 << 20
	maxDepth    = 4
)

// filesWith returns the files below a directory, but for those below other ones, whose bytes have a text: as they are, or in what is packed in
// them. That are compressed blocks of ClickHouse, wherever they begin (parts, and frames in the files of streams), and what is packed by S2 (chunks
// of a backup, and the blocks of a stream).
func filesWith(t *testing.T, dir, text string, but ...string) (found []string, files int) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // removed meanwhile
		}
		for _, b := range but {
			if strings.HasPrefix(path+"/", strings.TrimSuffix(b, "/")+"/") {
				return nil
			}
		}
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		if info.Size() > maxSearched {
			t.Errorf("%s has %d bytes, more than are searched", path, info.Size())
			return nil
		}
		data, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		files++
		if textIn(data, []byte(text), 0) {
			name, _ := filepath.Rel(dir, path)
			found = append(found, name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found, files
}

// textIn reports whether bytes have a text, as they are or packed.
func textIn(data, text []byte, depth int) bool {
	if bytes.Contains(data, text) {
		return true
	}
	if depth == maxDepth {
		return false
	}
	if n, err := s2.DecodedLen(data); err == nil && n <= maxUnpacked {
		if raw, err := s2.Decode(nil, data); err == nil && textIn(raw, text, depth+1) {
			return true
		}
	}
	for at := 0; ; {
		i := bytes.Index(data[at:], []byte("\xff\x06\x00\x00S2sTwO"))
		if i < 0 {
			break
		}
		at += i
		raw, _ := io.ReadAll(io.LimitReader(s2.NewReader(bytes.NewReader(data[at:])), maxUnpacked)) // up to where it ends
		if textIn(raw, text, depth+1) {
			return true
		}
		at++
	}
	return textInBlocks(data, text, depth)
}

// A compressed block of ClickHouse: 16 bytes of a checksum, the method, and both sizes, of which the first counts from the method on.
const (
	checksumBytes = 16
	headBytes     = 9
	methodLZ4     = 0x82
	methodZSTD    = 0x90
)

// textInBlocks looks into each compressed block of ClickHouse. The checksum says which bytes are one.
func textInBlocks(data, text []byte, depth int) bool {
	for at := 0; at+checksumBytes+headBytes < len(data); at++ {
		head := data[at+checksumBytes:]
		if head[0] != methodLZ4 && head[0] != methodZSTD {
			continue
		}
		packed, plain := binary.LittleEndian.Uint32(head[1:]), binary.LittleEndian.Uint32(head[5:])
		if packed <= headBytes || int(packed) > len(head) || plain == 0 || plain > maxUnpacked {
			continue
		}
		block := data[at : at+checksumBytes+int(packed)]
		if _, err := io.ReadFull(compress.NewReader(bytes.NewReader(block)), make([]byte, 1)); err != nil { // before it takes memory for what is none
			continue
		}
		raw := make([]byte, plain)
		if _, err := io.ReadFull(compress.NewReader(bytes.NewReader(block)), raw); err != nil {
			continue
		}
		if textIn(raw, text, depth+1) {
			return true
		}
		at += checksumBytes + int(packed) - 1
	}
	return false
}

// The search finds a text in each way in which Almanac and its servers pack it.
func TestFilesWith(t *testing.T) {
	t.Parallel()
	const text = "zqohnename"
	plain := []byte(strings.Repeat("of others ", 50) + text + strings.Repeat(" and more of others", 50))
	block := func(m compress.Method, raw []byte) []byte {
		w := compress.NewWriter(compress.LevelZero, m)
		if err := w.Compress(raw); err != nil {
			t.Fatal(err)
		}
		return w.Data
	}
	var stream bytes.Buffer
	w := s2.NewWriter(&stream)
	if _, err := w.Write(block(compress.ZSTD, plain)); err != nil || w.Close() != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, data := range map[string][]byte{
		"plain": plain, "lz4": append([]byte("head"), block(compress.LZ4, plain)...), "zstd, after others": append(block(compress.ZSTD, []byte("others")), block(compress.ZSTD, plain)...),
		"a chunk": s2.Encode(nil, append([]byte("seq"), block(compress.ZSTD, plain)...)), "a block of a stream": append([]byte("cmp\x01"), stream.Bytes()...),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
		if found, n := filesWith(t, dir, text); n != 1 || len(found) != 1 {
			t.Errorf("%s: it is found in %q of %d files", name, found, n)
		}
		if found, _ := filesWith(t, dir, "nonesuch"); len(found) > 0 {
			t.Errorf("%s: another text is found in it", name)
		}
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
}
