#ifndef CLIFELINEMESSAGES_H
#define CLIFELINEMESSAGES_H

#include "lifeline_arena.h"
#include "lifeline_array.h"
#include "lifeline_base.h"
#include "lifeline_extensions.h"
#include "lifeline_fields.h"
#include "lifeline_json.h"
#include "lifeline_message.h"
#include "lifeline_names.h"
#include "lifeline_references.h"
#include "lifeline_spares.h"
#include "lifeline_table.h"
#include "lifeline_text_format.h"
#include "lifeline_types.h"

#endif
