// The consumer's own crucible/core/shape.h: whoever includes it by mistake does not compile.
#pragma once

#define CONSUMER_SHAPE 4
namespace crucible {
class Shape;
}
