/* native_threads.h - private to pool.c: threads, locks, conditions, a clock in seconds, and numbers
 * that are read without a lock (flag_t, counter_t), of POSIX and of Windows. */
#ifndef SPCA_NATIVE_THREADS_H
#define SPCA_NATIVE_THREADS_H
#include <stddef.h>

#ifdef _WIN32
#define WIN32_LEAN_AND_MEAN
#include <windows.h>

typedef SRWLOCK lock_t;
typedef CONDITION_VARIABLE condition_t;
typedef HANDLE thread_t;
typedef volatile LONG flag_t;
typedef volatile LONG64 counter_t;
#define LOCK_INITIALIZER SRWLOCK_INIT
#define CONDITION_INITIALIZER CONDITION_VARIABLE_INIT
#ifdef _MSC_VER
#define OF_THREAD static __declspec(thread)
#else
#define OF_THREAD static _Thread_local
#endif

static inline void lock(lock_t *l)
{
    AcquireSRWLockExclusive(l);
}

static inline void unlock(lock_t *l)
{
    ReleaseSRWLockExclusive(l);
}

static inline void wait_for(condition_t *c, lock_t *l)
{
    (void)SleepConditionVariableSRW(c, l, INFINITE, 0);
}

static inline void wake_one(condition_t *c)
{
    WakeConditionVariable(c);
}

static inline void wake_all(condition_t *c)
{
    WakeAllConditionVariable(c);
}

static inline void join(thread_t thread)
{
    (void)WaitForSingleObject(thread, INFINITE);
    (void)CloseHandle(thread);
}

static inline double now(void)
{
    LARGE_INTEGER ticks, of_a_second;
    (void)QueryPerformanceCounter(&ticks);
    (void)QueryPerformanceFrequency(&of_a_second);
    return (double)ticks.QuadPart / (double)of_a_second.QuadPart;
}

static inline int get(flag_t *flag)
{
    return (int)InterlockedCompareExchange(flag, 0, 0);
}

static inline void set(flag_t *flag, int value)
{
    (void)InterlockedExchange(flag, value);
}

static inline ptrdiff_t count_up(counter_t *counter)
{
    return (ptrdiff_t)(InterlockedIncrement64(counter) - 1);
}

#else
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <time.h>

typedef pthread_mutex_t lock_t;
typedef pthread_cond_t condition_t;
typedef pthread_t thread_t;
typedef atomic_int flag_t;
typedef atomic_ptrdiff_t counter_t;
#define LOCK_INITIALIZER PTHREAD_MUTEX_INITIALIZER
#define CONDITION_INITIALIZER PTHREAD_COND_INITIALIZER
#define OF_THREAD static _Thread_local

static inline void lock(lock_t *l)
{
    pthread_mutex_lock(l);
}

static inline void unlock(lock_t *l)
{
    pthread_mutex_unlock(l);
}

static inline void wait_for(condition_t *c, lock_t *l)
{
    pthread_cond_wait(c, l);
}

static inline void wake_one(condition_t *c)
{
    pthread_cond_signal(c);
}

static inline void wake_all(condition_t *c)
{
    pthread_cond_broadcast(c);
}

static inline void join(thread_t thread)
{
    pthread_join(thread, NULL);
}

static inline double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static inline int get(flag_t *flag)
{
    return atomic_load(flag);
}

static inline void set(flag_t *flag, int value)
{
    atomic_store(flag, value);
}

static inline ptrdiff_t count_up(counter_t *counter)
{
    return atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}
#endif
#endif
