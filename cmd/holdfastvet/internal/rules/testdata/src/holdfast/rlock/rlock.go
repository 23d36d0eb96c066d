// Package rlock stands in for holdfast's. Made by stub_test.go.
package rlock

import "context"
import "github.com/redis/rueidis"
import "log/slog"
import "time"

type AcquireEnd struct {
	Lock     TracedLock
	Err      error
	How      How
	Took     time.Duration
	Waited   time.Duration
	Requests int
}

type AcquireStart struct {
	Lock  TracedLock
	Since time.Time
	Wait  time.Duration
	Lease Lease
}

type Acquisition interface {
	Deadline() time.Time
	Extend(ctx context.Context, lease Lease) error
	Name() string
	Owner() string
	Release(h *Hold) error
	Token() int64
}

func AtLeast(lock Locker, d time.Duration) Locker {
	return *new(Locker)
}

const Attached How = 5

type Class int

const ClassPermanent Class = 2

const ClassTemporary Class = 1

const ClassUnknown Class = 0

type Client struct {
	_ int
}

func (*Client) Attach(ctx context.Context, detached string, lease Lease) (hold *Hold, err error) {
	return *new(*Hold), *new(error)
}

func (*Client) Close(ctx context.Context) error {
	return *new(error)
}

func (*Client) ID() string {
	return *new(string)
}

func (*Client) NewFairLock(name string) *Lock {
	return *new(*Lock)
}

func (*Client) NewFencedLock(name string) *Lock {
	return *new(*Lock)
}

func (*Client) NewLock(name string) *Lock {
	return *new(*Lock)
}

func (*Client) NewNonReentrantFairLock(name string) *Lock {
	return *new(*Lock)
}

func (*Client) NewNonReentrantLock(name string) *Lock {
	return *new(*Lock)
}

func (*Client) NewReadWriteLock(name string) *ReadWriteLock {
	return *new(*ReadWriteLock)
}

func Detached(ctx context.Context) context.Context {
	return *new(context.Context)
}

func Do(ctx context.Context, lock Locker, wait time.Duration, lease Lease, fn func(context.Context) error) error {
	return *new(error)
}

func EnsureOwner(ctx context.Context) context.Context {
	return *new(context.Context)
}

var ErrClosed error

var ErrDeadlock error

var ErrExpired error

var ErrForced error

var ErrGone error

var ErrInvalid error

var ErrLost error

var ErrNotAcquired error

var ErrNotHeld error

var ErrNotReplicated error

var ErrNotRun error

var ErrOutcomeUnknown error

var ErrReentry error

var ErrReleased error

var ErrUpgrade error

const Forever time.Duration = 9223372036854775807

const Free How = 1

const Granted How = 3

type HandOver int

const HandOverAnywhere HandOver = 0

const HandOverLocal HandOver = 1

const HandOverNone HandOver = 2

const HandedOver How = 2

func HasOwner(ctx context.Context) bool {
	return *new(bool)
}

type HeldError struct {
	Lock        string
	Owner       string
	TTL         time.Duration
	Next        bool
	SameProcess bool
	SameClient  bool
	HolderKind  string
	Holder      Identity
	AcquiredAt  string
	_           int
}

func (*HeldError) Error() string {
	return *new(string)
}

func (*HeldError) Unwrap() []error {
	return *new([]error)
}

type Hold struct {
	_ int
}

func (*Hold) Context() context.Context {
	return *new(context.Context)
}

func (*Hold) Deadline() time.Time {
	return *new(time.Time)
}

func (*Hold) Detach() (detached string, err error) {
	return *new(string), *new(error)
}

func (*Hold) Done() <-chan struct{} {
	return *new(<-chan struct{})
}

func (*Hold) Err() error {
	return *new(error)
}

func (*Hold) Extend(ctx context.Context, lease Lease) (err error) {
	return *new(error)
}

func (*Hold) Leave() {
	return
}

func (*Hold) Name() string {
	return *new(string)
}

func (*Hold) Owner() string {
	return *new(string)
}

func (*Hold) Token() int64 {
	return *new(int64)
}

func (*Hold) Unlock() (err error) {
	return *new(error)
}

func (*Hold) UnlockTo(err *error) {
	return
}

func (*Hold) Valid() bool {
	return *new(bool)
}

type HoldEnd struct {
	Lock   TracedLock
	Owner  string
	Err    error
	Left   bool
	Last   bool
	Held   time.Duration
	Margin time.Duration
	Lease  time.Duration
}

type HoldStart struct {
	Lock     TracedLock
	Owner    string
	Token    int64
	How      How
	Nested   bool
	Deadline time.Time
	Lease    time.Duration
	Renewed  bool
}

type HoldTrace interface{ HoldEnd(d HoldEnd) }

type HoldTracer interface {
	HoldStart(ctx context.Context, d HoldStart) (context.Context, HoldTrace)
}

type How int

func (How) String() string {
	return *new(string)
}

type Identity struct {
	Program string
	Host    string
	PID     int
	Start   time.Time
	Label   string
}

func (Identity) String() string {
	return *new(string)
}

type Info struct {
	Name    string
	Locked  bool
	Owner   string
	Count   int
	Readers map[string]int
	Mode    string
	TTL     time.Duration
	Queue   []string
	Token   int64
}

type Lease int64

func (Lease) String() string {
	return *new(string)
}

type Lock struct {
	_ int
}

func (*Lock) ForceUnlock(ctx context.Context) (held bool, err error) {
	return *new(bool), *new(error)
}

func (*Lock) HoldCount(ctx context.Context) (count int, err error) {
	return *new(int), *new(error)
}

func (*Lock) Info(ctx context.Context) (info Info, err error) {
	return *new(Info), *new(error)
}

func (*Lock) IsHeld(ctx context.Context) (bool, error) {
	return *new(bool), *new(error)
}

func (*Lock) IsLocked(ctx context.Context) (bool, error) {
	return *new(bool), *new(error)
}

func (*Lock) Lock(ctx context.Context, lease Lease) (hold *Hold, err error) {
	return *new(*Hold), *new(error)
}

func (*Lock) Name() string {
	return *new(string)
}

func (*Lock) Server() string {
	return *new(string)
}

func (*Lock) TTL(ctx context.Context) (time.Duration, error) {
	return *new(time.Duration), *new(error)
}

func (*Lock) TryLock(ctx context.Context, wait time.Duration, lease Lease) (hold *Hold, err error) {
	return *new(*Hold), *new(error)
}

func (*Lock) Unlock(ctx context.Context) (err error) {
	return *new(error)
}

type Locker interface {
	Lock(ctx context.Context, lease Lease) (*Hold, error)
	Name() string
	TryLock(ctx context.Context, wait time.Duration, lease Lease) (*Hold, error)
	Unlock(ctx context.Context) error
}

type LostError struct {
	Lock   string
	Reason error
}

func (*LostError) Error() string {
	return *new(string)
}

func (*LostError) Unwrap() []error {
	return *new([]error)
}

func MultiTracer(tracers ...Tracer) Tracer {
	return *new(Tracer)
}

func New(redis rueidis.Client, options Options) (*Client, error) {
	return *new(*Client), *new(error)
}

func NewHold(ctx context.Context, of Acquisition) (h *Hold, end func(reason error)) {
	return *new(*Hold), *new(func(reason error))
}

const NoExpiry time.Duration = -1

const NoWait time.Duration = 0

type NodeFailed struct {
	Lock      TracedLock
	Server    string
	Operation string
	Err       error
}

type NodeTracer interface{ NodeFailed(d NodeFailed) }

const NotAcquired How = 0

type Options struct {
	WatchdogLease    time.Duration
	CommandTimeout   time.Duration
	PubSub           PubSubMode
	FairWindow       time.Duration
	WriterPreference WriterPreference
	SyncReplicas     int
	SyncTimeout      time.Duration
	HandOver         HandOver
	NoLocalTurns     bool
	Server           string
	ReleaseOnClose   bool
	MaxHold          time.Duration
	Debug            bool
	Label            string
	Anonymous        bool
	Tracer           Tracer
	NameMapper       func(name string) string
	Logger           *slog.Logger
}

const PreferNobody WriterPreference = 1

const PreferWriters WriterPreference = 0

func Prefix(prefix string) func(name string) string {
	return *new(func(name string) string)
}

const PubSubAuto PubSubMode = 0

const PubSubClassic PubSubMode = 1

type PubSubMode int

const PubSubSharded PubSubMode = 2

type ReadWriteLock struct {
	_ int
}

func (*ReadWriteLock) Name() string {
	return *new(string)
}

func (*ReadWriteLock) Read() *Lock {
	return *new(*Lock)
}

func (*ReadWriteLock) Write() *Lock {
	return *new(*Lock)
}

const Reentered How = 4

type RefusedNode struct {
	Server string
	Err    error
}

type RenewalEnd struct {
	Lock   TracedLock
	Owner  string
	Err    error
	Margin time.Duration
	Lease  time.Duration
	Hold   HoldTrace
}

type RenewalTracer interface{ RenewalEnd(d RenewalEnd) }

type ReplicationError struct {
	Lock   string
	Want   int
	Got    int
	Waited time.Duration
}

func (*ReplicationError) Error() string {
	return *new(string)
}

func (*ReplicationError) Unwrap() error {
	return *new(error)
}

type RoundEnd struct {
	Lock    TracedLock
	Round   int
	Granted int
	Want    int
	Took    time.Duration
	Refused []RefusedNode
}

type RoundTracer interface {
	RoundEnd(ctx context.Context, d RoundEnd)
}

type ServerError struct {
	Class   Class
	Code    string
	Message string
	Advice  string
	Err     error
}

func (*ServerError) Error() string {
	return *new(string)
}

func (*ServerError) Unwrap() error {
	return *new(error)
}

const SyncConnected int = -1

type TracedLock struct {
	Name   string
	Kind   string
	Server string
}

type Tracer interface {
	AcquireEnd(ctx context.Context, d AcquireEnd)
	AcquireStart(ctx context.Context, d AcquireStart) context.Context
}

type WaitEnd struct {
	Lock       TracedLock
	Waited     time.Duration
	BecameHead time.Time
}

type WaitStart struct {
	Lock TracedLock
}

type WaitTracer interface {
	WaitEnd(ctx context.Context, d WaitEnd)
	WaitStart(ctx context.Context, d WaitStart)
}

const Watchdog Lease = -1

func With[T any](ctx context.Context, lock Locker, wait time.Duration, lease Lease, fn func(context.Context) (T, error)) (result T, err error) {
	return *new(T), *new(error)
}

func WithGrace(ctx context.Context, d time.Duration) context.Context {
	return *new(context.Context)
}

func WithOwner(ctx context.Context) context.Context {
	return *new(context.Context)
}

type WriterPreference int
