// Days and dates. A year is taken to begin in March, so that the leap day is its last one; 400 of them, an era, repeat.
#include "times.h"

enum {
    DAYS_OF_ERA = 146097,
    DAYS_OF_CENTURY = 36524,
    DAYS_OF_FOUR_YEARS = 1461,
    // From 0000-03-01, where an era begins, to 1970-01-01.
    DAYS_BEFORE_1970 = 719468,
};

// The days of a year that begins in March which come before its month; 0 is March. Five months have 153 days.
static uint32_t days_before_month(uint32_t month) { return (153 * month + 2) / 5; }

LifelineDate lifeline_date_of_day(int64_t day) {
    uint32_t days = (uint32_t)(day + DAYS_BEFORE_1970);
    uint32_t era = days / DAYS_OF_ERA;
    uint32_t day_of_era = days % DAYS_OF_ERA;
    // The last day of four years, of a century but the last, and of the era, are not years of their own.
    uint32_t year_of_era = (day_of_era - day_of_era / (DAYS_OF_FOUR_YEARS - 1) + day_of_era / DAYS_OF_CENTURY
                            - day_of_era / (DAYS_OF_ERA - 1))
                           / 365;
    uint32_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    uint32_t month = (5 * day_of_year + 2) / 153;
    return (LifelineDate){
        .year = era * 400 + year_of_era + (month >= 10 ? 1 : 0),
        .month = month < 10 ? month + 3 : month - 9,
        .day = day_of_year - days_before_month(month) + 1,
    };
}

static bool is_leap_year(uint32_t year) { return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0); }

bool lifeline_day_of_date(LifelineDate date, int64_t *day) {
    static const uint8_t days_of_months[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    if (date.year < 1 || date.year > 9999 || date.month < 1 || date.month > 12) return false;
    uint32_t leap_day = date.month == 2 && is_leap_year(date.year) ? 1 : 0;
    if (date.day < 1 || date.day > days_of_months[date.month - 1] + leap_day) return false;
    uint32_t year = date.year - (date.month <= 2 ? 1 : 0);
    uint32_t month = date.month > 2 ? date.month - 3 : date.month + 9;
    uint32_t year_of_era = year % 400;
    uint32_t day_of_era =
        365 * year_of_era + year_of_era / 4 - year_of_era / 100 + days_before_month(month) + date.day - 1;
    *day = (int64_t)(year / 400) * DAYS_OF_ERA + day_of_era - DAYS_BEFORE_1970;
    return true;
}
