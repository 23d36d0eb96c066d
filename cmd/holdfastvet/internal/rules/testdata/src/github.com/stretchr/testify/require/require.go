// Package require stands in for the real one.
package require

type TestingT interface {
	Errorf(format string, args ...any)
	FailNow()
}

func NoError(t TestingT, err error, msgAndArgs ...any)             {}
func Error(t TestingT, err error, msgAndArgs ...any)               {}
func ErrorIs(t TestingT, err, target error, msgAndArgs ...any)     {}
func ErrorAs(t TestingT, err error, target any, msgAndArgs ...any) {}
func Nil(t TestingT, object any, msgAndArgs ...any)                {}
func NotNil(t TestingT, object any, msgAndArgs ...any)             {}
func False(t TestingT, value bool, msgAndArgs ...any)              {}
func True(t TestingT, value bool, msgAndArgs ...any)               {}
func Equal(t TestingT, expected, actual any, msgAndArgs ...any)    {}
