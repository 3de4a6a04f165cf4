package loki

import (
	"errors"
	"fmt"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/almanac-events/almanac/internal/gateway/request"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/rawjson"
)

// Field numbers of logproto: PushRequest, Stream, Entry, LabelPair, Timestamp.
const (
	pushStreams    = 1
	streamLabels   = 1
	streamEntries  = 2
	entryTime      = 1
	entryLine      = 2
	entryMetadata  = 3
	pairName       = 1
	pairValue      = 2
	timeSeconds    = 1
	timeNanos      = 2
	maxPairs       = 4 * schemas.MaxAttrs // labels of a stream; metadata of an entry
	maxNanosSecond = 1e9
)

// DecodeProtobuf reads a push as protobuf in a snappy block.
func DecodeProtobuf(body []byte, o Options) (Push, error) {
	raw, size, err := request.Snappy(body, o.MaxBytes)
	switch {
	case err != nil:
		return Push{}, fmt.Errorf("%w: protobuf must be a snappy block: %w", ErrPush, err)
	case size > o.MaxBytes:
		return Push{}, fmt.Errorf("%w: %d bytes decompressed, the limit is %d; send fewer entries at once", ErrTooLarge, size, o.MaxBytes)
	}
	p := Push{space: o.MaxBytes}
	err = walk(raw, func(n protowire.Number, v []byte, _ uint64) error {
		if n != pushStreams || v == nil {
			return nil
		}
		return p.stream(&o, v)
	})
	switch {
	case errors.Is(err, ErrTooLarge):
		return Push{}, err
	case err != nil:
		return Push{}, fmt.Errorf("%w: %w", ErrPush, err)
	}
	return p, nil
}

// stream adds the entries of one stream. Its labels may come after them.
func (p *Push) stream(o *Options, b []byte) error {
	var labels string
	var entries [][]byte
	err := walk(b, func(n protowire.Number, v []byte, _ uint64) error {
		switch {
		case n == streamLabels && v != nil:
			labels = string(v)
		case n == streamEntries && v != nil:
			entries = append(entries, v)
		}
		return nil
	})
	if err != nil {
		return err
	}
	pairs, ok := parseLabels(labels)
	if !ok && labels != "" || len(pairs) > maxPairs {
		pairs = []rawjson.Pair{{Key: AttrLabels, Value: labels}}
	}
	for _, e := range entries {
		r, err := protoEntry(e)
		if err != nil {
			return err
		}
		r.pairs = merged(r.pairs, pairs)
		if err := p.add(o, &r); err != nil {
			return err
		}
	}
	return nil
}

// merged is an entry's metadata and then what its stream's labels say beyond it.
func merged(metadata, labels []rawjson.Pair) []rawjson.Pair {
	if len(metadata) == 0 {
		return labels
	}
	said := make(map[rawjson.Pair]bool, len(metadata))
	for _, p := range metadata {
		said[p] = true
	}
	for _, p := range labels {
		if !said[p] {
			metadata = append(metadata, p)
		}
	}
	return metadata
}

func protoEntry(b []byte) (r record, err error) {
	var seconds, nanos uint64
	err = walk(b, func(n protowire.Number, v []byte, _ uint64) error {
		switch {
		case n == entryTime && v != nil:
			return walk(v, func(n protowire.Number, _ []byte, x uint64) error {
				switch n {
				case timeSeconds:
					seconds = x
				case timeNanos:
					nanos = x
				}
				return nil
			})
		case n == entryLine && v != nil:
			r.line = string(v)
		case n == entryMetadata && v != nil:
			if len(r.pairs) == maxPairs {
				return fmt.Errorf("an entry has more than %d pairs of metadata", maxPairs)
			}
			var pair rawjson.Pair
			err := walk(v, func(n protowire.Number, v []byte, _ uint64) error {
				switch n {
				case pairName:
					pair.Key = string(v)
				case pairValue:
					pair.Value = string(v)
				}
				return nil
			})
			r.pairs = append(r.pairs, pair)
			return err
		}
		return nil
	})
	if nanos >= maxNanosSecond {
		return r, fmt.Errorf("an entry's time has %d nanoseconds in its second", nanos)
	}
	r.at = time.Unix(int64(seconds), int64(nanos)).UTC()
	return r, err
}

// walk calls f for each field of a message. v is a bytes field's content and not
// nil, or x is a varint; other kinds are passed over.
func walk(b []byte, f func(n protowire.Number, v []byte, x uint64) error) error {
	for len(b) > 0 {
		n, kind, size := protowire.ConsumeTag(b)
		if size < 0 {
			return fmt.Errorf("protobuf: %w", protowire.ParseError(size))
		}
		b = b[size:]
		var v []byte
		var x uint64
		switch kind {
		case protowire.BytesType:
			v, size = protowire.ConsumeBytes(b)
			if size >= 0 && v == nil {
				v = []byte{}
			}
		case protowire.VarintType:
			x, size = protowire.ConsumeVarint(b)
		default:
			size = protowire.ConsumeFieldValue(n, kind, b)
		}
		if size < 0 {
			return fmt.Errorf("protobuf field %d: %w", n, protowire.ParseError(size))
		}
		b = b[size:]
		if err := f(n, v, x); err != nil {
			return err
		}
	}
	return nil
}
