"""Writes the five small data sets that ship inside scikit-learn as files that run_experiment reads, and prints what
scikit-learn's own models come to on the same training and test samples."""

import numpy
import pandas
from sklearn import datasets
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler


def fit(name, model, train, test):
    score = make_pipeline(StandardScaler(), model).fit(*train).score(*test)
    print(f"{name:<14} {type(model).__name__:<19} {score:.4f}")


def table(name):
    """A column for each feature and one, the last, for the target; the classes by their names."""
    data = getattr(datasets, f"load_{name}")(as_frame=True)
    frame = data.frame
    if "target_names" in data:
        frame["target"] = data.target_names[data.target]
    is_class = frame.target.dtype == object or isinstance(frame.target.iloc[0], str)
    train, test = train_test_split(frame, test_size=0.2, random_state=0, stratify=frame.target if is_class else None)
    train.to_csv(f"{name}-train.csv", index=False)
    test.to_csv(f"{name}-test.csv", index=False)
    parts = [(part.drop(columns="target").to_numpy(), part.target.to_numpy()) for part in (train, test)]
    if is_class:
        fit(name, LogisticRegression(max_iter=10000), *parts)
        fit(name, MLPClassifier(hidden_layer_sizes=(256, 256), max_iter=100, random_state=0), *parts)
    else:
        fit(name, Ridge(), *parts)
        fit(name, MLPRegressor(hidden_layer_sizes=(256, 256), max_iter=100, random_state=0), *parts)


for name in ("iris", "wine", "breast_cancer", "diabetes"):
    table(name)

digits = datasets.load_digits()
x_train, x_test, y_train, y_test = train_test_split(
    digits.images.astype("uint8"), digits.target, test_size=0.2, random_state=0, stratify=digits.target)
numpy.savez_compressed("digits.npz", x_train=x_train, y_train=y_train, x_test=x_test, y_test=y_test)
flat = (x_train.reshape(len(x_train), -1), y_train), (x_test.reshape(len(x_test), -1), y_test)
fit("digits", LogisticRegression(max_iter=10000), *flat)
fit("digits", MLPClassifier(hidden_layer_sizes=(256, 256), max_iter=100, random_state=0), *flat)
