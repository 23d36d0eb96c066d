package holdfast.bench;

/** One thread's view of a lock. Who releases it is the thread that took it. */
record Locker(Lock taking, Runnable releasing) {
    /** Waits for a lock, or until the thread is interrupted. */
    interface Lock {
        void lock() throws InterruptedException;
    }

    void lock() throws InterruptedException {
        taking.lock();
    }

    void unlock() {
        releasing.run();
    }

    void cycle() throws InterruptedException {
        lock();
        unlock();
    }
}
