package faults

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// SQL asks ClickHouse by plain HTTP.
type SQL struct {
	base, user, password, database string
	client                         *http.Client
}

// NewSQL reads an address with credentials.
func NewSQL(dsn string) (*SQL, error) {
	u, err := url.Parse(dsn)
	if err != nil {
		return nil, err
	}
	s := &SQL{base: u.Scheme + "://" + u.Host, user: u.User.Username(), database: strings.Trim(u.Path, "/"), client: &http.Client{}}
	s.password, _ = u.User.Password()
	return s, nil
}

// Do runs a statement and hands its answer over.
func (s *SQL) Do(ctx context.Context, statement string, read func(io.Reader) error) error {
	q := url.Values{"database": {s.database}}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.base+"/?"+q.Encode(), strings.NewReader(statement))
	if err != nil {
		return err
	}
	req.SetBasicAuth(s.user, s.password)
	resp, err := s.client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 4096))
		return fmt.Errorf("%s: %s", resp.Status, text)
	}
	if read == nil {
		_, err = io.Copy(io.Discard, resp.Body)
		return err
	}
	return read(resp.Body)
}

// Number is the answer of a statement that gives one.
func (s *SQL) Number(ctx context.Context, format string, a ...any) (n uint64, err error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	err = s.Do(ctx, fmt.Sprintf(format, a...), func(r io.Reader) error {
		text, err := io.ReadAll(r)
		if err != nil {
			return err
		}
		n, err = strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
		return err
	})
	return n, err
}

// Rows reads rows of UInt64 columns, as many as width.
func (s *SQL) Rows(ctx context.Context, width int, statement string, row func([]uint64) error) error {
	return s.Do(ctx, statement+" FORMAT RowBinary", func(r io.Reader) error {
		buf := make([]byte, 8*width)
		vals := make([]uint64, width)
		br := bufio.NewReaderSize(r, 64<<10)
		for {
			if _, err := io.ReadFull(br, buf); errors.Is(err, io.EOF) {
				return nil
			} else if err != nil {
				return err
			}
			for i := range vals {
				vals[i] = binary.LittleEndian.Uint64(buf[8*i:])
			}
			if err := row(vals); err != nil {
				return err
			}
		}
	})
}
