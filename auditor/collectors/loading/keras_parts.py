"""Which parts a configuration of Keras may name: those listed here, for Keras imports whatever a file names.

The list holds parts that compute on numbers alone. Left out are those that run functions (Lambda), read files or other
models (StringLookup, TextVectorization, TFSMLayer) or wrap other frameworks, and everything that will yet be invented.
"""

from collections.abc import Iterator
from typing import Any

from auditor.collectors.loading.allowed import allowed

__all__ = ["foreign", "is_known", "plain"]

_SIZES = ("1D", "2D", "3D")
_LAYERS = allowed(
    """
    Activation ActivityRegularization Add AdditiveAttention AlphaDropout Attention Average BatchNormalization
    Bidirectional CategoryEncoding CenterCrop Concatenate Dense DepthwiseConv1D DepthwiseConv2D Discretization Dot Dropout
    ELU EinsumDense Embedding Flatten GRU GRUCell GaussianDropout GaussianNoise GroupNormalization GroupQueryAttention
    HashedCrossing Hashing Identity InputLayer LSTM LSTMCell LayerNormalization LeakyReLU LocallyConnected1D
    LocallyConnected2D Masking Maximum Minimum MultiHeadAttention Multiply Normalization PReLU Permute RMSNormalization RNN
    RandomBrightness RandomContrast RandomCrop RandomFlip RandomHeight RandomRotation RandomTranslation RandomWidth
    RandomZoom ReLU RepeatVector Rescaling Reshape Resizing ReversibleEmbedding SeparableConv1D SeparableConv2D SimpleRNN
    SimpleRNNCell Softmax SpectralNormalization StackedRNNCells Subtract ThresholdedReLU TimeDistributed UnitNormalization
    """
).union(
    (f"Conv{size}Transpose" for size in _SIZES),
    (
        name + size
        for size in _SIZES
        for name in (
            *("AveragePooling", "Conv", "ConvLSTM", "Cropping", "GlobalAveragePooling", "GlobalMaxPooling"),
            *("MaxPooling", "SpatialDropout", "UpSampling", "ZeroPadding"),
        )
    ),
)
_ACTIVATIONS = allowed(
    """
    celu elu exponential gelu glu hard_shrink hard_sigmoid hard_silu hard_swish hard_tanh leaky_relu linear log_sigmoid
    log_softmax mish relu relu6 selu sigmoid silu soft_shrink softmax softplus softsign sparse_plus sparsemax squareplus
    swish tanh tanh_shrink
    """
)
_INITIALIZERS = allowed(
    """
    Constant GlorotNormal GlorotUniform HeNormal HeUniform Identity IdentityInitializer LecunNormal LecunUniform Ones
    Orthogonal OrthogonalInitializer RandomNormal RandomUniform TruncatedNormal VarianceScaling Zeros
    """
)
_OPERATIONS = allowed(  # of Keras 3, on tensors
    """
    Absolute Add Concatenate Divide Exp ExpandDims GetItem Log Matmul Max Maximum Mean Min Minimum Multiply Negative Power
    Relu Reshape Sigmoid Softmax Sqrt Square Squeeze Subtract Sum Tanh Transpose TrueDivide
    """
)
_FUNCTIONAL = frozenset({"Functional"})
_ALLOWED: dict[str, frozenset[str]] = {
    "keras": frozenset({"Functional", "Model", "Sequential", "DTypePolicy"}),
    "keras.models": frozenset({"Functional", "Model", "Sequential"}),
    "keras.layers": _LAYERS,
    "keras.initializers": _INITIALIZERS,
    "keras.regularizers": frozenset({"L1", "L1L2", "L2", "OrthogonalRegularizer"}),
    "keras.constraints": frozenset({"MaxNorm", "MinMaxNorm", "NonNeg", "RadialConstraint", "UnitNorm"}),
    "keras.mixed_precision": frozenset({"Policy"}),
    "keras.dtype_policies": frozenset({"DTypePolicy"}),
    "keras.src.engine.functional": _FUNCTIONAL,
    "keras.src.models.functional": _FUNCTIONAL,
    "keras.src.engine.sequential": frozenset({"Sequential"}),
    "keras.src.models.sequential": frozenset({"Sequential"}),
    "keras.src.ops.numpy": _OPERATIONS,
    "keras.src.ops.nn": _OPERATIONS,
}
# Values that Keras writes as objects without a module.
_VALUES = frozenset({"__tensor__", "__keras_tensor__", "__numpy__", "__tuple__", "__slice__", "__ellipsis__"})
_OF_SAVED_MODELS = frozenset({"TypeSpec", "TensorShape", "InputSpec", "__tuple__", "__ellipsis__"})
_NAMELESS = _OF_SAVED_MODELS.union(*_ALLOWED.values()) - _OPERATIONS | _LAYERS
_WRAPPED = "keras.src.layers.core.tf_op_layer"  # a function of TensorFlow as a layer
_WRAPPERS = ("TFOpLambda", "SlicingOpLambda")
_FUNCTIONS = allowed(
    """
    __operators__.add __operators__.getitem cast clip_by_value concat expand_dims identity linalg.matmul math.abs math.add
    math.divide math.exp math.log math.maximum math.minimum math.multiply math.negative math.pow math.reduce_max
    math.reduce_mean math.reduce_min math.reduce_sum math.sigmoid math.softplus math.sqrt math.square math.subtract
    math.tanh math.truediv nn.gelu nn.relu nn.silu nn.softmax reshape squeeze stack transpose
    """
)
_PRIVATE = "tensorflow_privacy.privacy.keras_models.dp_keras_model"


def plain(config: Any) -> Any:
    """Return a configuration without what is for training alone.

    Models of tensorflow-privacy, which Keras cannot find again and which predict the same, become plain ones.
    """
    if isinstance(config, list):
        return [plain(item) for item in config]
    if not isinstance(config, dict):
        return config
    found = {name: plain(value) for name, value in config.items() if name != "compile_config"}
    if found.get("module") == _PRIVATE:
        inner = found.get("config")
        functional = isinstance(inner, dict) and "input_layers" in inner
        found |= {
            "module": "keras",
            "class_name": "Model" if functional else "Sequential",
            "registered_name": None,
        }
    return found


def foreign(config: Any) -> Iterator[str]:
    """Yield the names of what a configuration asks for at any depth and is not on the list, functions included."""
    for item in _dictionaries(config):
        for name, value in item.items():
            if name.endswith("activation") and isinstance(value, str) and value not in _ACTIVATIONS:
                yield f"keras.activations.{value}"
        if "class_name" in item and not is_known(item):
            yield _name(item)


def is_known(item: dict[str, Any], *, saved_model: bool = False) -> bool:
    """Return whether an object is on the list; those of a SavedModel need name no module."""
    name, module, inner = item["class_name"], item.get("module"), item.get("config")
    if not isinstance(name, str) or not isinstance(module, str | None) or _is_renamed(item):
        return False
    if name in _WRAPPERS:
        function = inner.get("function") if isinstance(inner, dict) else None
        known = isinstance(function, str) and function in _FUNCTIONS
        return known and (module == _WRAPPED or (saved_model and module is None))
    if name == "function":
        return (
            module in {"builtins", "keras.activations"} and isinstance(inner, str) and inner in _ACTIVATIONS
        )
    if module is None:
        return name in (_NAMELESS if saved_model else _VALUES)
    if module == "builtins":  # where Keras 3 puts such values
        return name in _VALUES
    return name in _ALLOWED.get(module, ())


def _is_renamed(item: dict[str, Any]) -> bool:
    """Return whether an object is to be found among those registered in this process, whatever else it says."""
    registered, inner = item.get("registered_name"), item.get("config")
    names = [None, item["class_name"], *([inner, "function"] if item["class_name"] == "function" else [])]
    return registered not in names


def _name(item: dict[str, Any]) -> str:
    """Return what an object is called in sentences and among trusted types."""
    inner = item.get("config")
    if item["class_name"] in _WRAPPERS and isinstance(inner, dict):
        return f"tf.{inner.get('function')}"
    last = inner if item["class_name"] == "function" else item["class_name"]
    if _is_renamed(item):
        last = item["registered_name"]
    return ".".join(str(part) for part in (item.get("module"), last) if part is not None)


def _dictionaries(config: Any) -> Iterator[dict[str, Any]]:
    waiting = [config]
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict):
            yield item
            waiting += item.values()
        elif isinstance(item, list):
            waiting += item
