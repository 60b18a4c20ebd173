"""Checks of scikit-learn that ``parametrize_with_checks`` leaves out."""

from sklearn.utils import estimator_checks

FOR_ALL = [
    estimator_checks.check_dataframe_column_names_consistency,
    estimator_checks.check_param_validation,
    estimator_checks.check_inplace_ensure_writeable,
]
FOR_TRANSFORMERS = [
    *FOR_ALL,
    estimator_checks.check_get_feature_names_out_error,
    estimator_checks.check_transformer_get_feature_names_out,
    estimator_checks.check_transformer_get_feature_names_out_pandas,
    estimator_checks.check_set_output_transform,
    estimator_checks.check_set_output_transform_pandas,
    estimator_checks.check_set_output_transform_polars,
    estimator_checks.check_global_output_transform_pandas,
    estimator_checks.check_global_set_output_transform_polars,
]
