// Times of the proleptic Gregorian calendar, as google.protobuf.Timestamp counts them: without leap seconds.
#ifndef LIFELINE_TIMES_H
#define LIFELINE_TIMES_H

#include <stdbool.h>
#include <stdint.h>

// 0001-01-01T00:00:00Z and 9999-12-31T23:59:59Z, in seconds since 1970: what a Timestamp may hold.
#define LIFELINE_FIRST_SECOND INT64_C(-62135596800)
#define LIFELINE_LAST_SECOND INT64_C(253402300799)
// The most seconds that a Duration may hold, some 10,000 years. A fraction may come on top.
#define LIFELINE_LONGEST_DURATION INT64_C(315576000000)

typedef struct LifelineDate {
    uint32_t year;   // from 1 on
    uint32_t month;  // from 1 on
    uint32_t day;    // from 1 on
} LifelineDate;

enum { LIFELINE_SECONDS_OF_DAY = 86400 };

// The date of a day, from 0001-01-01 on, that is so many days before or after 1970-01-01.
LifelineDate lifeline_date_of_day(int64_t day);

// How many days a date, from 0001-01-01 to 9999-12-31, is after 1970-01-01. False when there is no such date.
bool lifeline_day_of_date(LifelineDate date, int64_t *day);

#endif
