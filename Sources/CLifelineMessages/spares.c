// Invariant: a thread that keeps objects has registered a destructor, which releases them when the thread ends.
#include "lifeline_spares.h"

#include <pthread.h>
#include <stddef.h>

// The objects are loans. As many are in use at once as submessages are being changed inside each other.
enum { CAPACITY = 8 };

typedef struct Spares {
    void *objects[CAPACITY];
    size_t count;
    void (*_Nullable release)(void *_Nonnull object);
} Spares;

static _Thread_local Spares spares;

static pthread_key_t key;
static bool has_key;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void release_all(void *ended) {
    Spares *of_thread = ended;
    while (of_thread->count > 0) of_thread->release(of_thread->objects[of_thread->count -= 1]);
    of_thread->release = NULL;  // so that the thread registers again if a later destructor keeps objects
}

static void create_key(void) {
    has_key = pthread_key_create(&key, release_all) == 0;
}

static bool register_thread(void) {
    pthread_once(&once, create_key);
    return has_key && pthread_setspecific(key, &spares) == 0;
}

void *lifeline_spares_take(void) {
    return spares.count > 0 ? spares.objects[spares.count -= 1] : NULL;
}

bool lifeline_spares_keep(void *object, void (*release)(void *object)) {
    if (spares.count == CAPACITY) return false;
    if (spares.release == NULL) {
        if (!register_thread()) return false;
        spares.release = release;
    }
    spares.objects[spares.count] = object;
    spares.count += 1;
    return true;
}
