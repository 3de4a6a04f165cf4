package intake

import (
	"errors"

	"github.com/almanac-events/almanac/schemas/rawjson"
)

// Why the options cannot be used, or the input as a whole.
var (
	// ErrOptions: an option has a value that is not allowed, or does not fit
	// the others. Nothing was read.
	ErrOptions = errors.New("bad input options")
	// ErrHeader: the header line of a CSV file is missing, cannot be read, or
	// lacks a named column. No record was read.
	ErrHeader = errors.New("bad csv header")
	// ErrCutShort: gzip or zstd data ends in its middle. What came before was read.
	ErrCutShort = errors.New("the compressed input is cut short: what came before was read; get it again, and send what is missing")
	// ErrDamaged: gzip or zstd data cannot be unpacked. What came before was read.
	ErrDamaged = errors.New("the compressed input is damaged: what came before was read; get it again, and send what is missing")
)

// Why a record is refused. Reading goes on with the next one.
var (
	// ErrTooLong: the record has more than MaxRecordBytes.
	ErrTooLong = errors.New("record too long")
	// ErrNoTime: no time of the asked format is where it should be.
	ErrNoTime = rawjson.ErrNoTime
	// ErrSyntax: the record is not of the format.
	ErrSyntax = errors.New("malformed record")
	// ErrField: a field has a value that cannot be used.
	ErrField = errors.New("bad field")
)
